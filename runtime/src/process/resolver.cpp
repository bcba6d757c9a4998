#include "process/resolver.hpp"

#include <memory>
#include <utility>

namespace troupe::process {
namespace {

Resolver::Resolved collect(const std::vector<detail::Argument>& arguments) {
  std::vector<detail::Payload> values;
  values.reserve(arguments.size());
  for (const auto& argument : arguments) {
    if (const auto* value = std::get_if<detail::Payload>(&argument)) {
      values.push_back(*value);
      continue;
    }
    const auto& outcome = std::get<detail::ObjectPtr>(argument)->outcome();
    if (const auto* failure = std::get_if<Failure>(&outcome)) return *failure;
    values.push_back(std::get<detail::Payload>(outcome));
  }
  return values;
}

}  // namespace

void Resolver::fetch(const detail::ObjectPtr& object) {
  if (!object->owner() || object->ready() || !object->start_fetch()) return;
  peers_.request(
      object->owner(),
      [id = object->id()](wire::Message::Builder message, std::uint64_t request) {
        auto fetch = message.initFetch();
        fetch.setId(request);
        fetch.setObject(id);
      },
      [object](Outcome outcome) {
        if (auto* failure = std::get_if<Failure>(&outcome)) {
          if (failure->kind == Failure::Kind::ProcessDied || failure->kind == Failure::Kind::Disconnected) {
            failure->kind = Failure::Kind::ObjectLost;
            failure->message = "the value went with its owner: " + failure->message;
          }
        }
        object->complete(std::move(outcome));
      });
}

void Resolver::resolve(std::vector<detail::Argument> arguments, std::function<void(Resolved)> then) {
  struct Wait {
    std::vector<detail::Argument> arguments;
    std::function<void(Resolved)> then;
    std::size_t missing = 1;  // one for this function: `then` is not called before all are counted
    void arrived() {
      if (--missing == 0) then(collect(arguments));
    }
  };
  auto wait = std::make_shared<Wait>(Wait{std::move(arguments), std::move(then)});
  for (const auto& argument : wait->arguments) {
    const auto* object = std::get_if<detail::ObjectPtr>(&argument);
    if (!object || (*object)->ready()) continue;
    ++wait->missing;
    fetch(*object);
    (*object)->when_ready([wait] { wait->arrived(); });
  }
  wait->arrived();
}

}  // namespace troupe::process
