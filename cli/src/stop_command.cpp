#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "job/job.hpp"
#include "output.hpp"
#include "transport/socket/socket.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

using Names = std::vector<std::string>;
constexpr std::size_t kMostShown = 10;

/// "  ended 2 programs: sort and count"; empty where there was none. `unnamed`: so many more than
/// there are names.
std::string line_about(const std::string& one, Names names, std::size_t unnamed) {
  const auto count = names.size() + unnamed;
  if (count == 0) return {};
  if (names.size() > kMostShown) names.resize(kMostShown);
  if (names.size() < count) names.push_back(fmt::format("{} more", count - names.size()));
  return fmt::format("  ended {} {}{}: {}\n", count, one, count == 1 ? "" : "s", in_words(names));
}

/// What ran until then. A job of `troupe job` is held by a detached actor, and by another one while
/// it waits for its place.
std::string what_ended(const nlohmann::json& ends) {
  const auto programs = ends.value("program_names", Names());
  const auto detached = ends.value("detached_actor_names", Names());
  const auto unnamed = [&](const char* count, const Names& names) {
    return std::max(ends.value(count, names.size()), names.size()) - names.size();
  };
  Names jobs, actors;
  for (const auto& name : detached) {
    const auto running = launch::job_of_actor(name);
    const auto job = running.empty() ? launch::job_of_keeper(name) : running;
    if (job.empty()) {
      actors.push_back(name);
    } else if (std::ranges::find(jobs, job) == jobs.end()) {
      jobs.push_back(job);
    }
  }
  return line_about("program", programs, unnamed("programs", programs)) +
         line_about("job", jobs, 0) +
         line_about("detached actor", actors, unnamed("detached_actors", detached));
}

}  // namespace

int run_stop(const StopArguments& arguments) {
  const auto head = find_head(arguments.head);
  const auto answer = stop_head(head, find_token(head, arguments.token_file));
  const auto nodes = answer.value("nodes", 0);
  say(stdout, fmt::format("stopped the cluster at {} ({} {})\n",
                          transport::format_endpoint(head.at.host, head.at.port), nodes,
                          nodes == 1 ? "node" : "nodes"));
  say(stdout, what_ended(answer.value("ends", nlohmann::json::object())));
  return 0;
}

}  // namespace troupe::cli
