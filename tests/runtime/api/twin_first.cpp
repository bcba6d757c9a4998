#include <troupe/task.hpp>

#include "twins.hpp"

namespace {
int twin(int x) { return x + 1; }
}  // namespace

const troupe::detail::FunctionKey& first_twin() {
  return troupe::detail::Invoker<twin, void, decltype(troupe::detail::task_signature<twin>())>::key;
}
int call_first_twin(int x) { return troupe::task<twin>(x).get(); }
