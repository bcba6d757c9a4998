#include "run/ending.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "run/files.hpp"
#include "words/indented.hpp"

namespace troupe::launch {
namespace {

std::string ranks_in_words(int ranks, int nodes) {
  return fmt::format("{} {} on {} {}", ranks, ranks == 1 ? "rank" : "ranks", nodes,
                     nodes == 1 ? "node" : "nodes");
}

/// " and 3 of 3 restarts,"; empty: there was none.
std::string restarts_in_words(const Ending& ending) {
  if (ending.restarts == 0) return {};
  return fmt::format(" and {} of {} restarts,", ending.restarts, ending.max_restarts);
}

}  // namespace

std::string in_words(const Ending& ending) {
  if (!ending.not_formed.empty()) return "no rank could be started: " + ending.not_formed;
  auto text = fmt::format("rank {} on node {}", ending.failure->rank, ending.failed_node);
  // Of a rank that was lost with its node, what is to be looked for is the machine.
  text += ending.failure->pid > 0 ? fmt::format(" (pid {})", ending.failure->pid)
                                  : fmt::format(" ({})", ending.failed_address);
  text += " " + ending.failure->why;
  if (ending.ranks == 2) text += "; the other one was ended";
  if (ending.ranks > 2) text += fmt::format("; the other {} were ended", ending.ranks - 1);
  // Python has printed the end of its traceback too: once is enough.
  const auto& traceback = ending.failure->traceback;
  if (!traceback.empty()) return text + "; its traceback:" + indented(traceback);
  if (!ending.last_lines.empty()) text += "; its last lines:";
  for (const auto& line : ending.last_lines) text += indented(line);
  return text;
}

std::string last_line(const Ending& ending, bool quiet) {
  if (!ending.stopped_by.empty() && ending.ranks == 0)
    return fmt::format("troupe run: {} ended all ranks after {:.1f} s, before one was started\n",
                       ending.stopped_by, ending.seconds);
  if (!ending.stopped_by.empty())
    return fmt::format("troupe run: {} ended all ranks after {:.1f} s\n", ending.stopped_by,
                       ending.seconds);
  if (ending.failure || !ending.not_formed.empty())
    return fmt::format("troupe run: after {:.1f} s{} {}\n", ending.seconds,
                       restarts_in_words(ending), in_words(ending));
  if (quiet) return {};
  return fmt::format("troupe run: {} ended well after {:.1f} s\n",
                     ranks_in_words(ending.ranks, ending.nodes), ending.seconds);
}

void write_summary(const std::string& file, const Ending& ending) {
  nlohmann::json summary{{"status", ending.status},
                         {"ranks", ending.ranks},
                         {"nodes", ending.nodes},
                         {"restarts", ending.restarts},
                         {"max_restarts", ending.max_restarts},
                         {"growths", ending.growths},
                         {"seconds", ending.seconds},
                         {"stopped_by", ending.stopped_by}};
  if (ending.failure) {
    summary["failure"] = {{"rank", ending.failure->rank},
                          {"node", ending.failed_node},
                          {"address", ending.failed_address},
                          {"pid", ending.failure->pid},
                          {"exit_code", ending.failure->exit_code},
                          {"signal", ending.failure->signal},
                          {"why", ending.failure->why},
                          {"last_lines", ending.last_lines}};
    if (!ending.failure->traceback.empty())
      summary["failure"]["traceback"] = ending.failure->traceback;
  } else if (!ending.not_formed.empty()) {
    summary["failure"] = {{"why", ending.not_formed}};
  }
  const auto text = summary.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  write_file(file, text + "\n", "--summary");
}

}  // namespace troupe::launch
