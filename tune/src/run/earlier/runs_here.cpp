#include "run/earlier/runs_here.hpp"

#include <map>
#include <mutex>
#include <set>

namespace troupe::tune::detail {
namespace {

struct RunsHere {
  std::mutex mutex;  // guards by_storage
  std::map<std::filesystem::path, std::set<std::filesystem::path>> by_storage;
};

RunsHere& runs_here() {
  static RunsHere runs;
  return runs;
}

}  // namespace

void add_run_of_this_process(const std::filesystem::path& folder) {
  auto& runs = runs_here();
  const std::lock_guard lock(runs.mutex);
  runs.by_storage[folder.parent_path()].insert(folder);
}

bool has_several_runs_in(const std::filesystem::path& storage) {
  auto& runs = runs_here();
  const std::lock_guard lock(runs.mutex);
  const auto at = runs.by_storage.find(storage);
  return at != runs.by_storage.end() && at->second.size() > 1;
}

}  // namespace troupe::tune::detail
