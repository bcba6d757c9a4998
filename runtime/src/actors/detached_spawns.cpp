#include "actors/detached_spawns.hpp"

#include <algorithm>
#include <chrono>
#include <variant>

#include <fmt/format.h>

#include "objects/blocking.hpp"

namespace troupe::runtime {
namespace {

constexpr std::chrono::seconds kQuiet{1};
constexpr std::chrono::seconds kPatience{30};
/// Of those that have failed, and of which nobody has asked that.
constexpr std::size_t kMostKept = 1000;

const Failure* why_not_made(const detail::ActorState& actor) {
  return actor.constructed->ready() ? std::get_if<Failure>(&actor.constructed->outcome()) : nullptr;
}
bool is_ready(const detail::ActorState& actor) { return actor.constructed->ready(); }

}  // namespace

void DetachedSpawns::add(const std::string& name, const detail::ActorPtr& actor) {
  const std::lock_guard lock(mutex_);
  std::erase_if(spawns_, [](const Spawn& spawn) {
    return is_ready(*spawn.actor) && (spawn.actor->awaited || !why_not_made(*spawn.actor));
  });
  if (spawns_.size() >= kMostKept) {
    const auto oldest =
        std::ranges::find_if(spawns_, [](const Spawn& spawn) { return is_ready(*spawn.actor); });
    if (oldest != spawns_.end()) spawns_.erase(oldest);
  }
  spawns_.push_back({name, actor});
}

std::vector<DetachedSpawns::Spawn> DetachedSpawns::waiting() const {
  const std::lock_guard lock(mutex_);
  std::vector<Spawn> waiting;
  for (const auto& spawn : spawns_) {
    if (!is_ready(*spawn.actor)) waiting.push_back(spawn);
  }
  return waiting;
}

void DetachedSpawns::finish(ProcessContext& process, const detail::Object& cluster_end,
                            const std::function<void(const std::string&)>& say) {
  const auto wait_for_all = [&](std::chrono::seconds time) {
    return wait_giving_cpu_back(
        process, [&] { return waiting().empty() || cluster_end.ready(); }, deadline_after(time));
  };
  if (!wait_for_all(kQuiet)) {
    if (const auto left = waiting(); !left.empty()) {
      say(
          fmt::format("this program ends once detached actor '{}' is constructed, or after {} s: "
                      "until then the "
                      "actor would end with it",
                      left.front().name, kPatience.count()));
    }
    wait_for_all(kPatience - kQuiet);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, actor] : spawns_) {
    if (!is_ready(*actor)) {
      const auto why = cluster_end.ready()
                           ? std::string("the cluster has ended before it was constructed")
                           : fmt::format(
                                 "it was not constructed {} s after the end of the program, which "
                                 "can wait longer with ready().get()",
                                 kPatience.count());
      say(fmt::format("detached actor '{}' was not made: {}", name, why));
      continue;
    }
    const auto* failure = why_not_made(*actor);
    if (failure != nullptr && !actor->awaited)
      say(fmt::format("detached actor '{}' was not made: {}", name, failure->message));
  }
  spawns_.clear();
}

}  // namespace troupe::runtime
