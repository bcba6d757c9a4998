// A real cluster: `troupe head`, `troupe worker` and a driver's program, each executed as a
// process; and a program with LibTorch.
#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "built.hpp"
#include "cases.hpp"
#include "processes.hpp"

namespace troupe::bench {
namespace {

using CommandLine = std::vector<std::string>;

/// The address in the line "add a machine:  troupe worker --head HOST:PORT".
std::string address_in(const std::string& greeting) {
  const std::string before = "troupe worker --head ";
  const auto at = greeting.find(before);
  if (at == std::string::npos)
    throw std::runtime_error("the head has not said its address: " + greeting);
  const auto start = at + before.size();
  return greeting.substr(start, greeting.find('\n', start) - start);
}

CommandLine environment_of(const TemporaryFolder& folder) {
  return {"XDG_STATE_HOME=" + folder.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
}

/// Seconds from the execution of the head to the first result. The worker starts once the head has
/// said where it is, the driver at the same time as the worker.
double first_result() {
  const TemporaryFolder folder;
  const auto environment = environment_of(folder);
  const auto start = Clock::now();
  Command head({TROUPE_PROGRAM, "head", "--port", "0", "--no-node"}, environment);
  const auto address = address_in(head.wait_for("token file:"));
  Command worker({TROUPE_PROGRAM, "worker", "--head", address}, environment);
  Command driver({TROUPE_FIRST_TASK, "--address", address}, environment);
  driver.wait_for("result 42");
  return seconds_since(start);
}

void start_up(const Report& report) {
  constexpr auto kName = "cluster_first_result_s";
  if (!report.wants(kName)) return;
  std::vector<double> seconds;
  for (int i = 0; i < sized(report, 7, 1); ++i) seconds.push_back(first_result());
  std::ranges::sort(seconds);
  report.print(kName, seconds[seconds.size() / 2], "s",
               fmt::format("median of {}", seconds.size()));
}

void at_rest(const Report& report) {
  if (!report.wants_any({"idle_processes", "idle_pss_MiB"})) return;
  const TemporaryFolder folder;
  Command head({TROUPE_PROGRAM, "head", "--port", "0"}, environment_of(folder));
  head.wait_for("token file:");
  // Its node has joined, and buffers are what they stay.
  pause(std::chrono::milliseconds(report.smoke() ? 100 : 1000));
  const auto processes = processes_of(head.pid());
  report.print("idle_processes", static_cast<double>(processes.size()), "",
               "of `troupe head` with its node, no job");
  report.print("idle_pss_MiB", pss_bytes(processes) / (1 << 20), "MiB",
               "proportional set size of these");
}

void start_with_torch(const Report& report) {
  constexpr auto kName = "actors_started_20_torch";
  if (!report.wants(kName)) return;
#ifdef TROUPE_ACTORS_WITH_TORCH
  Command program({TROUPE_ACTORS_WITH_TORCH, fmt::format("{}", report.options().seconds)}, {});
  std::istringstream printed(program.wait_for(" rounds", std::chrono::seconds(60)));
  std::string word;
  double rate = 0;
  printed >> word >> rate;
  report.print(kName, rate, "1/s", "actors_started_20 in a program that has LibTorch");
#else
  report.missing(kName, "1/s", "cannot run here: built without LibTorch");
#endif
}

}  // namespace

void cluster(const Report& report) {
  start_with_torch(report);
  start_up(report);
  at_rest(report);
}

}  // namespace troupe::bench
