#include "calls/resolver.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "ids/session.hpp"

namespace troupe::runtime {

bool Resolver::is_here(std::span<const detail::Argument> arguments) {
  return std::ranges::all_of(arguments, [](const detail::Argument& argument) {
    const auto* object = std::get_if<detail::ObjectPtr>(&argument);
    return !object ||
           ((*object)->ready() && std::holds_alternative<detail::Payload>((*object)->outcome()));
  });
}

const detail::Payload& Resolver::value_of(const detail::Argument& argument) {
  if (const auto* value = std::get_if<detail::Payload>(&argument)) return *value;
  return std::get<detail::Payload>(std::get<detail::ObjectPtr>(argument)->outcome());
}

void Resolver::fetch(const detail::ObjectPtr& object) {
  if (!object->owner() || object->ready()) return;
  if (object->is_stale()) return object->complete(of_an_ended_session());
  if (!object->start_fetch()) return;
  peers_.request(
      object->owner(),
      [id = object->id()](wire::Message::Builder message, std::uint64_t request) {
        auto fetch = message.initFetch();
        fetch.setId(request);
        fetch.setObject(id);
      },
      [object](Outcome outcome, std::optional<Progress> lost, std::chrono::nanoseconds) {
        auto* failure = std::get_if<Failure>(&outcome);
        if (failure && lost && failure->kind != Failure::Kind::Disconnected) {
          failure->kind = Failure::Kind::ObjectLost;
          failure->message = "the value went with its owner: " + failure->message;
        }
        object->complete(std::move(outcome));
      });
}

void Resolver::resolve(std::vector<detail::Argument> arguments,
                       std::function<void(Resolved)> then) {
  struct Wait {
    std::vector<detail::Argument> arguments;
    std::function<void(Resolved)> then;
    std::size_t missing = 1;  // one for this function: `then` is not called before all are counted
    void arrived() {
      if (--missing != 0) return;
      for (const auto& argument : arguments) {
        const auto* object = std::get_if<detail::ObjectPtr>(&argument);
        if (!object) continue;
        if (const auto* failure = std::get_if<Failure>(&(*object)->outcome()))
          return then(*failure);
      }
      then(std::move(arguments));
    }
  };
  auto wait = std::make_shared<Wait>(Wait{std::move(arguments), std::move(then)});
  for (std::size_t i = 0, count = wait->arguments.size(); i < count; ++i) {
    const auto* object = std::get_if<detail::ObjectPtr>(&wait->arguments[i]);
    if (!object || (*object)->ready()) continue;
    ++wait->missing;
    fetch(*object);
    (*object)->when_ready([wait] { wait->arrived(); });
  }
  wait->arrived();
}

}  // namespace troupe::runtime
