#include "list/kinds.hpp"

#include <algorithm>
#include <stdexcept>

#include "list/rows.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

std::vector<Kind> all_kinds() {
  return {
      {"nodes",
       {"node", "name", "state", "processes", "leases", "actors", "ranks", "free", "reserved",
        "total"},
       {"node", "name", "state", "processes", "idle", "leases", "actors", "ranks", "blocked"},
       node_rows,
       ""},
      {"actors",
       {"actor", "type", "name", "job", "state", "node", "process", "pid", "waits", "reason"},
       {"actor", "type", "name", "job", "state", "node", "process", "pid"},
       actor_rows,
       ""},
      {"tasks",
       {"lease", "request", "job", "job_name", "state", "node", "process", "pid", "waits", "what",
        "reason"},
       {"lease", "request", "job", "job_name", "state", "node", "process", "pid"},
       task_rows,
       "A row is a worker process that a job has leased for its tasks, or waits for. Which task "
       "runs there, and how many\nwait behind it, is known to the job's own program, and not to "
       "the head."},
      {"gangs",
       {"gang", "job", "state", "size", "nodes", "waits", "reason"},
       {"gang", "job", "state", "size"},
       gang_rows,
       ""},
      {"objects",
       {"node", "name", "state", "objects", "used", "capacity", "pinned", "kept", "spilled"},
       {"node", "name", "state", "objects"},
       object_rows,
       "A row is the object store of a node, with what it holds in all. Single values are known to "
       "their node, and not to\nthe head."},
      {"jobs",
       {"job", "name", "state", "pid", "weight", "processes", "leases", "actors", "gangs",
        "pending", "reason"},
       {"job", "name", "state", "pid", "weight", "processes", "leases", "actors", "gangs",
        "pending"},
       job_rows,
       "A row is a driver, or a detached actor, which has a job of its own. The programs of "
       "`troupe job submit`, also those that have ended, are in "
       "`troupe job list`."},
  };
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const auto all = all_kinds();
  return all;
}

const Kind& kind_named(const std::string& name) {
  const auto found = std::ranges::find(kinds(), name, &Kind::name);
  if (found == kinds().end()) throw std::invalid_argument("there is no list of " + name);
  return *found;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto& kind : kinds()) names.push_back(kind.name);
  return names;
}

std::string kind_meant(const std::string& word) {
  for (const auto& kind : kinds()) {
    if (kind.name == word || kind.name == word + "s") return kind.name;
  }
  return {};
}

std::string keys_text(const Kind& kind) { return in_words(kind.filters); }

}  // namespace troupe::cli
