// Two jobs that both want more than there is, of real processes.
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// When its pieces of work were done, in milliseconds.
using Moments = std::vector<std::int64_t>;

Child job(const TestCluster& cluster, const std::string& what, int seconds) {
  return Child({TROUPE_TEST_SHARING_DRIVER, what, std::to_string(seconds)}, cluster.environment());
}

Moments moments_of(Child& job) {
  const auto status = job.wait(90s);
  INFO(job.output());
  REQUIRE(status);
  REQUIRE(WEXITSTATUS(*status) == 0);
  Moments moments;
  std::istringstream words(job.output());
  for (std::string word; words >> word;) {
    if (word == "done" && words >> word) moments.push_back(std::stoll(word));
  }
  REQUIRE(moments.size() >= 2);
  return moments;
}

/// Pieces a second from `from` to `to`.
double rate(const Moments& moments, std::int64_t from, std::int64_t to) {
  const auto count =
      std::ranges::count_if(moments, [=](auto moment) { return moment > from && moment <= to; });
  return static_cast<double>(count) * 1000 / static_cast<double>(to - from);
}

double rate_alone(const TestCluster& cluster, const std::string& what) {
  auto alone = job(cluster, what, 4);
  const auto moments = moments_of(alone);
  return rate(moments, moments.front(), moments.back());
}

}  // namespace

TEST_CASE(
    "beside a stream of short tasks a sweep of gangs does 40 % of what it does alone, and so does "
    "the stream",
    "[cli][cluster][sharing][timing]") {
  TestCluster cluster(1, 4);
  const auto stream_alone = rate_alone(cluster, "stream");
  const auto sweep_alone = rate_alone(cluster, "sweep");

  auto stream = job(cluster, "stream", 10);
  stream.wait_for_output("done");
  auto sweep = job(cluster, "sweep", 8);
  const auto gangs = moments_of(sweep);
  const auto tasks = moments_of(stream);
  const auto from = std::max(tasks.front(), gangs.front());
  const auto to = std::min(tasks.back(), gangs.back());
  REQUIRE(to > from);
  CAPTURE(stream_alone, sweep_alone, rate(tasks, from, to), rate(gangs, from, to));
  CHECK(rate(tasks, from, to) >= 0.4 * stream_alone);
  CHECK(rate(gangs, from, to) >= 0.4 * sweep_alone);
}
