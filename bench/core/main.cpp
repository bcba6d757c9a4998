// What Troupe's core costs on this machine: one row a figure, or with --json one line {"name",
// "value", "unit"}. A case that cannot be run has the value null and says why.
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <troupe/troupe.hpp>

#include "arguments.hpp"
#include "cases.hpp"

namespace {

using namespace troupe::bench;

/// The cases of the peer's program, in one session as there. First: a worker process runs main up
/// to here.
void in_one_session(const Report& report, int argc, char** argv) {
  if (!report.wants_any(kSessionCases)) return;
  const auto cluster = troupe::init(argc, argv);
  calls(report);
  tasks(report);
  values(report);
  actors(report);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Arguments arguments(
      "What calls, tasks, values, actors, clusters and decisions cost on this machine.");
  arguments.option("--seconds", options.seconds, "of each case that repeats");
  arguments.flag("--json", options.json, "a JSON line for each figure");
  arguments.flag("--smoke", options.smoke, "small sizes: shows that every case runs, not how fast");
  arguments.option("--only", options.only,
                   "cases whose name matches one of these shell patterns, separated by commas");
  arguments.option("--seed", options.seed, "of what is random");
  arguments.parse(argc, argv);
  if (options.smoke) options.seconds = 0;

  const Report report(options);
  try {
    in_one_session(report, argc, argv);
    many_actors(report);
    pending_tasks(report);
    cluster(report);
    growth(report);
    call_parts(report);
    scheduler(report);
    scheduler_growth(report);
    network(report);
  } catch (const std::exception& error) {
    std::cerr << "core_bench: " << error.what() << '\n';
    return 1;
  }
  if (const auto names = report.unmatched(); !names.empty()) {
    std::cerr << fmt::format("core_bench: no case matches --only '{}'; there are: {}\n",
                             options.only, fmt::join(names, ", "));
    return 2;
  }
}
