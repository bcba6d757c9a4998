#include "list/kinds.hpp"

#include <algorithm>
#include <stdexcept>

#include "list/rows.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

constexpr std::size_t kMostObjects = 100;

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
       {"task", "state", "runs", "lease", "request", "job", "job_name", "node", "process", "pid",
        "waits", "what", "reason"},
       {"task", "state", "lease", "request", "job", "job_name", "node", "process", "pid"},
       task_rows,
       "A row is a worker process that a job has leased for its tasks, with the one that runs "
       "there, or one that it waits for.\nHow many tasks wait behind these is known to the job's "
       "own program, and not to the head.",
       0,
       "running",
       "which tasks run there is not known"},
      {"gangs",
       {"gang", "job", "state", "size", "nodes", "waits", "reason"},
       {"gang", "job", "state", "size"},
       gang_rows,
       ""},
      {"objects",
       {"object", "bytes", "state", "copy", "node", "name", "owner", "pinned_by", "job",
        "job_name"},
       {"object", "state", "copy", "node", "name", "owner", "owner_pid", "owner_node", "job",
        "job_name"},
       object_rows,
       "A row is a value in the object store of a node, where it lies from 100 KiB on; smaller "
       "ones travel with their calls.",
       kMostObjects,
       "objects",
       "its objects are missing"},
      {"stores",
       {"node", "name", "state", "objects", "used", "capacity", "pinned", "kept", "spilled"},
       {"node", "name", "state", "objects"},
       store_rows,
       "A row is the object store of a node, with what it holds in all: `troupe list objects` has "
       "the single values."},
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
