#include "parallel/torch_error.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::train {

std::string text_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

void translated(const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    throw Error(Failure{.kind = Failure::Kind::Unknown,
                        .message = fmt::format("{}: {}", what, text_of(error)),
                        .type = "c10::Error"});
  }
}

}  // namespace troupe::train
