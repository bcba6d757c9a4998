#include "calls/by_value.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "calls/calls.hpp"
#include "calls/resolver.hpp"
#include "objects/process_context.hpp"
#include "objects/store_link.hpp"
#include "objects/stored.hpp"

namespace troupe::runtime {
namespace {

Failure refs_stay(std::string_view what, std::string_view function) {
  return {.kind = Failure::Kind::Refused,
          .message = fmt::format("{} of {} holds a Ref, and refs stay within their program: give "
                                 "the value itself, as with get()",
                                 what, function)};
}

/// The arguments of one call while their large values are brought here.
struct Bringing {
  std::vector<detail::Argument> arguments;
  std::function<void(ByValue)> then;
  std::size_t missing = 1;  // one for the loop over them
  std::optional<Failure> failure = {};

  void arrived() {
    if (--missing != 0) return;
    if (failure) return then(std::move(*failure));
    then(std::move(arguments));
  }
};

void bring(const std::shared_ptr<Bringing>& bringing, std::size_t index,
           const detail::StoredPtr& stored) {
  ++bringing->missing;
  ProcessContext::current().store().view(
      stored->place(), [bringing, index, stored](std::variant<FetchedView, store::Refusal> seen) {
        if (const auto* view = std::get_if<FetchedView>(&seen)) {
          detail::Payload value;
          value.bytes.assign(reinterpret_cast<const char*>(view->bytes.data()), view->bytes.size());
          bringing->arguments[index] = std::move(value);
        } else if (!bringing->failure) {
          bringing->failure = failure_of(std::get<store::Refusal>(seen));
        }
        bringing->arrived();
      });
}

}  // namespace

Outcome by_value(Outcome outcome, std::string_view function) {
  auto* value = std::get_if<detail::Payload>(&outcome);
  if (!value) return outcome;
  if (!value->refs.empty()) return refs_stay("the result", function);
  if (!value->stored) return outcome;
  if (const auto bytes = value->stored->place().bytes; bytes > kLargestValue)
    return too_large(fmt::format("the result of {}", function), bytes);
  try {
    const auto block = detail::open_stored(*value);
    return detail::Payload{.bytes = std::string(block.bytes), .refs = {}};
  } catch (const Error& error) {
    return error.failure();
  }
}

void bring_by_value(std::vector<detail::Argument> arguments, std::string_view function,
                    std::function<void(ByValue)> then) {
  const auto holds_refs = [](const detail::Argument& argument) {
    return !Resolver::value_of(argument).refs.empty();
  };
  if (std::ranges::any_of(arguments, holds_refs)) return then(refs_stay("an argument", function));
  std::size_t bytes = 0;
  for (const auto& argument : arguments) {
    const auto& value = Resolver::value_of(argument);
    bytes += value.stored ? value.stored->place().bytes : value.bytes.size();
  }
  if (bytes > kLargestValue)
    return then(too_large(fmt::format("the arguments of {}", function), bytes));
  auto bringing = std::make_shared<Bringing>(
      Bringing{.arguments = std::move(arguments), .then = std::move(then)});
  for (std::size_t i = 0; i < bringing->arguments.size(); ++i) {
    const auto stored = Resolver::value_of(bringing->arguments[i]).stored;
    if (stored) bring(bringing, i, stored);
  }
  bringing->arrived();
}

}  // namespace troupe::runtime
