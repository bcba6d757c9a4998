#include "parallel/torch_error.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <troupe/errors.hpp>

namespace troupe::train {

void translated(const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    throw Error(Failure{.kind = Failure::Kind::Unknown,
                        .message = fmt::format("{}: {}", what, error.what_without_backtrace()),
                        .type = "c10::Error"});
  }
}

}  // namespace troupe::train
