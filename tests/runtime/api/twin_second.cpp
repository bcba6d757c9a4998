#include <troupe/task.hpp>

#include "twins.hpp"

namespace {
int twin(int x) { return x + 1000; }
}  // namespace

const troupe::detail::FunctionKey& second_twin() {
  return troupe::detail::Invoker<twin, void, decltype(troupe::detail::task_signature<twin>())>::key;
}
int call_second_twin(int x) { return troupe::task<twin>(x).get(); }
