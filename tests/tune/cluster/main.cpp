#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cstdlib>

#include <troupe/cluster.hpp>

/// The tests are drivers, so this program is also its own worker process: started as one, it goes no further than init.
int main(int argc, char** argv) {
  if (std::getenv("TROUPE_BOOT") != nullptr) {
    const auto never = troupe::init(argc, argv);
    return 1;
  }
  return Catch::Session().run(argc, argv);
}
