// Two jobs that both want more than there is, of real processes. How much of it each gets is tested
// in virtual time (tests/scheduler/sharing_test.cpp).
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

namespace {

/// When its pieces of work were done, in milliseconds.
using Moments = std::vector<std::int64_t>;

/// `until`: a file with which it ends, or the number of its trials.
Child job(const TestCluster& cluster, const std::string& what, const std::string& until) {
  return Child({TROUPE_TEST_SHARING_DRIVER, what, until}, cluster.environment());
}

Moments moments_of(Child& job) {
  const auto status = job.wait();
  INFO(job.output());
  REQUIRE(status);
  REQUIRE(WEXITSTATUS(*status) == 0);
  Moments moments;
  std::istringstream words(job.output());
  for (std::string word; words >> word;) {
    if (word == "done" && words >> word) moments.push_back(std::stoll(word));
  }
  return moments;
}

}  // namespace

TEST_CASE("beside a stream of short tasks a sweep of gangs goes on, and so does the stream",
          "[cli][cluster][sharing]") {
  constexpr std::size_t kTrials = 10;
  TestCluster cluster(1, 4);
  const auto enough = cluster.folder() + "/enough";
  auto stream = job(cluster, "stream", enough);
  stream.wait_for_output("done");
  // The stream goes on until the sweep is over: one that has no turn beside it does not end.
  auto sweep = job(cluster, "sweep", std::to_string(kTrials));
  const auto gangs = moments_of(sweep);
  REQUIRE(gangs.size() == kTrials);
  std::ofstream{enough};
  const auto tasks = moments_of(stream);
  // A stream that has no turn beside the sweep is done with nothing meanwhile.
  CHECK(std::ranges::any_of(
      tasks, [&](auto done) { return done > gangs.front() && done < gangs.back(); }));
}
