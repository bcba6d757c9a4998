#include "run/checkpoints/node_removals.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <troupe/detail/rank_calls.hpp>
#include <troupe/errors.hpp>
#include <troupe/with.hpp>

namespace troupe::tune::detail {
namespace fs = std::filesystem;

bool is_inside(const std::string& path, const std::string& folder) {
  if (!path.starts_with(folder) || path.size() == folder.size()) return false;
  return folder.ends_with('/') || path[folder.size()] == '/';
}

void remove_checkpoints(const std::string& run, const std::vector<std::string>& gone,
                        const std::vector<std::string>& staying) {
  std::error_code failed;
  const auto folder = fs::canonical(run, failed).string();
  if (failed) return;
  std::vector<std::string> stays;
  for (const auto& path : staying) {
    if (auto found = fs::canonical(path, failed).string(); !failed) stays.push_back(found);
  }
  for (const auto& path : gone) {
    if (!fs::path(path).is_absolute()) continue;
    const auto found = fs::canonical(path, failed).string();
    if (failed || !is_inside(found, folder)) continue;
    const bool holds_one = std::ranges::any_of(
        stays, [&](const auto& other) { return other == found || is_inside(other, found); });
    if (!holds_one) fs::remove_all(path, failed);
  }
}

TaskRemover::~TaskRemover() {
  for (const auto& [node, removal] : under_way_) removal.cancel();
}

NodeRemover::Node TaskRemover::look_at(std::uint32_t node) {
  if (const auto at = under_way_.find(node); at != under_way_.end()) {
    if (!at->second.ready()) return Node::Busy;
    const auto failure = at->second.failure();
    if (failure && failure->kind == Failure::Kind::Impossible) gone_.insert(node);
    under_way_.erase(at);
  }
  return gone_.contains(node) ? Node::Gone : Node::Free;
}

void TaskRemover::remove(std::uint32_t node, const NodeRemoval& removal) {
  try {
    under_way_[node] = with({.cpus = 0, .labels = {{"troupe.node", std::to_string(node)}}})
                           .task<remove_checkpoints>(removal.run, removal.gone, removal.staying);
  } catch (const Error&) {
    under_way_.erase(node);
    gone_.insert(node);  // so is this process, from the cluster that the node is in
  }
}

bool TaskRemover::wait_for_one(std::chrono::steady_clock::time_point deadline) {
  std::vector<troupe::detail::ObjectPtr> objects;
  for (const auto& [node, removal] : under_way_) {
    if (!removal.ready()) objects.push_back(troupe::detail::object_of(removal));
  }
  if (objects.empty() || std::chrono::steady_clock::now() >= deadline) return false;
  troupe::detail::wait_for_any(objects, deadline);
  return true;
}

}  // namespace troupe::tune::detail
