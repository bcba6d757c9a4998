#pragma once

#include <functional>
#include <memory>

#include <troupe/errors.hpp>

/// What the runtime tells of the calls of this process's actor: a rank whose call has failed will
/// not come to what the other ranks do together, and they need not wait for it.
namespace troupe::detail {

/// `then` is called after each call of the actor (its constructor too) that has failed, once the
/// answer is on its way, on the thread that runs the calls: the next one waits for it. With the end
/// of the result it is not called any more, and does not run; `then` itself must not end it. Any
/// thread. In a process without an actor it is never called.
[[nodiscard]] std::shared_ptr<void> on_failed_call(std::function<void(const Failure& why)> then);

/// For the runtime.
void tell_failed_call(const Failure& why);

}  // namespace troupe::detail
