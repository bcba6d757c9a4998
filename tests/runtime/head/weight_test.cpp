// What a driver says of its job's weight when it registers.
#include "peer.hpp"

using namespace troupe;
using namespace troupe::head::test;

TEST_CASE("a job's weight arrives at the head, which counts one that makes no sense as 1",
          "[head][sharing]") {
  Scene scene;
  Peer administrator{scene, wire::Role::ADMIN};
  for (const auto& [said, counts] :
       {std::pair{2.5, 2.5}, std::pair{0.0, 1.0}, std::pair{-3.0, 1.0}}) {
    CAPTURE(said);
    Peer driver{scene, wire::Role::DRIVER};
    driver.register_job("weighed", said);
    CHECK(administrator.status()["jobs"].back()["weight"] == counts);
  }
}
