#include "session/awaited.hpp"

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>

#include <fmt/format.h>

#include "session/process.hpp"

namespace troupe::runtime {
namespace {

constexpr std::size_t kMostNamed = 3;
constexpr std::chrono::milliseconds kAnswer{200};  // of this process's own loop

std::string state_of_actor(Process& process, const detail::ActorPtr& actor) {
  if (!actor) return {};
  auto asked = std::make_shared<std::promise<AddressPtr>>();
  auto answer = asked->get_future();
  process.post([asked, actor] { asked->set_value(actor->process); });
  if (answer.wait_for(kAnswer) != std::future_status::ready) return {};
  const auto place = answer.get();
  if (!place) return "its actor waits for a place: `troupe status` says for which";
  return fmt::format("its actor, process {} on node {}, has not answered", place->process,
                     place->node);
}

std::string describe(const OutChannel::Line& line) {
  const auto others = [](std::size_t count) {
    return fmt::format("{} call{}", count, count == 1 ? "" : "s");
  };
  if (line.running.empty())
    return fmt::format("{} of this program stand{} before it", others(line.before),
                       line.before == 1 ? "s" : "");
  auto text = fmt::format("{} runs", line.running);
  if (line.called != 0) {
    const auto ago = std::chrono::duration_cast<std::chrono::seconds>(
        os::duration_of(os::ticks() - line.called));
    text += fmt::format(", called {} s ago", ago.count());
  }
  if (line.before == 1) return text;
  return text + fmt::format(", and {} of this program stand{} between", others(line.before - 1),
                            line.before == 2 ? "s" : "");
}

std::string state_of_call(Process& process, const detail::Object::Source& source) {
  if (!source.channel) return state_of_actor(process, source.actor.lock());
  const auto callee = source.channel->callee();
  if (source.channel->has_begun(source.call)) return fmt::format("it runs in process {}", callee);
  const auto line = source.channel->line_before(source.call);
  if (line.before == 0) {
    return fmt::format(
        "it has not begun: process {} is busy with calls of others, or is making the actor",
        callee);
  }
  return fmt::format("it has not begun: process {} is busy with other calls: {}", callee,
                     describe(line));
}

}  // namespace

std::string describe_awaited(Process& process, const detail::Object& object) {
  const auto& source = object.source;
  if (source.label.empty()) return {};
  const auto state =
      source.is_task ? process.tasks().state_of(object) : state_of_call(process, source);
  return fmt::format("{}{}{}", source.label,
                     source.rank < 0 ? "" : fmt::format(" of rank {}", source.rank),
                     state.empty() ? "" : fmt::format(" ({})", state));
}

std::string describe_missing(Process& process, std::span<const detail::ObjectPtr> objects) {
  std::string text;
  std::size_t named = 0;
  std::size_t more = 0;
  for (const auto& object : objects) {
    if (object->ready()) continue;
    const auto what = named < kMostNamed ? describe_awaited(process, *object) : std::string();
    if (what.empty()) {
      ++more;
      continue;
    }
    text += (named++ == 0 ? "; not there: " : ", ") + what;
  }
  if (named > 0 && more > 0) text += fmt::format(", {} more", more);
  return text;
}

}  // namespace troupe::runtime
