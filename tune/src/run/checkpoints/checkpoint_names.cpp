#include "run/checkpoints/checkpoint_names.hpp"

#include <algorithm>
#include <system_error>

namespace troupe::tune::detail {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kHere = "./";

/// The path within `folder`, from its slash on; empty: it is not in there.
std::string_view within(std::string_view path, const std::string& folder) {
  if (folder.empty() || !path.starts_with(folder)) return {};
  const auto rest = path.substr(folder.size());
  return rest.starts_with('/') ? rest : std::string_view();
}

}  // namespace

CheckpointNames::CheckpointNames(const fs::path& run) : run_{run.string()}, canonical_run_{run_} {
  std::error_code failed;
  if (const auto found = fs::canonical(run, failed); !failed) canonical_run_ = found.string();
}

std::string CheckpointNames::name_of(const std::string& path) const {
  if (run_.empty()) return path;
  const fs::path reported = path;
  const auto normal = reported.lexically_normal().string();
  if (path.starts_with(kHere)) return normal;  // of the trial's working directory
  // What ".." leads to depends on links.
  if (std::ranges::count(reported, fs::path("..")) > 0) return path;
  for (const auto& run : {run_, canonical_run_}) {
    if (const auto rest = within(normal, run); !rest.empty()) return "." + std::string(rest);
  }
  return path;
}

std::string CheckpointNames::path_of(const std::string& name) const {
  return !run_.empty() && name.starts_with(kHere) ? run_ + name.substr(1) : name;
}

Trial CheckpointNames::with_paths(Trial trial) const {
  for (auto* name : {&trial.checkpoint, &trial.best_checkpoint, &trial.launched_from})
    *name = path_of(*name);
  for (auto& earlier : trial.earlier) earlier.checkpoint = path_of(earlier.checkpoint);
  for (auto& takeover : trial.takeovers) {
    takeover.checkpoint = path_of(takeover.checkpoint);
    takeover.own_checkpoint = path_of(takeover.own_checkpoint);
  }
  return trial;
}

}  // namespace troupe::tune::detail
