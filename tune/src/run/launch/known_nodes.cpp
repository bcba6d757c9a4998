#include "run/launch/known_nodes.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

constexpr std::chrono::seconds kBetweenQuestions{5};

}  // namespace

void KnownNodes::ask() {
  if (answer_) return;
  asked_at_ = Clock::now();
  answer_ = troupe::detail::ask_for_nodes();
}

void KnownNodes::take_answer() {
  if (answer_ && !troupe::detail::is_ready(*answer_)) return;
  const auto nodes = troupe::detail::nodes_in(std::exchange(answer_, nullptr));
  for (const auto& node : nodes) names_[node.number] = node.name;
  for (const auto number : std::exchange(wanted_, {}))
    names_.try_emplace(number, fmt::format("node {}", number));
  if (nodes.empty()) return;
  cpus_ = gpus_ = 0;
  for (const auto& node : nodes) {
    *cpus_ += node.cpus;
    *gpus_ += node.gpus;
  }
}

std::optional<std::string> KnownNodes::name_of(std::uint32_t number) {
  // An answer from before this node was there has come before its gang was placed.
  take_answer();
  if (!names_.contains(number)) {
    wanted_.insert(number);
    ask();
    if (!answer_) take_answer();
  }
  const auto at = names_.find(number);
  return at == names_.end() ? std::nullopt : std::optional(at->second);
}

void KnownNodes::add_totals(InUse& in_use) {
  take_answer();
  if (Clock::now() - asked_at_ >= kBetweenQuestions) ask();
  in_use.cluster_cpus = cpus_;
  in_use.cluster_gpus = gpus_;
}

}  // namespace troupe::tune
