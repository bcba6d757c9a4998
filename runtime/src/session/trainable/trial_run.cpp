#include <troupe/detail/trial_run.hpp>

#include <exception>
#include <stdexcept>

namespace troupe::detail {
namespace {

std::exception_ptr error_of(const ObjectPtr& object) {
  if (!is_ready(*object)) return nullptr;
  try {
    get_object(object, std::chrono::milliseconds(0));
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// Says that another rank is to blame.
bool is_consequence(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const GangBroken&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

bool has_failed(const ObjectPtr& ref) { return error_of(ref) != nullptr; }

void raise_cause(const std::vector<ObjectPtr>& refs, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::exception_ptr consequence;
  for (;;) {
    std::size_t ready = 0;
    for (const auto& ref : refs) {
      ready += is_ready(*ref) ? 1 : 0;
      const auto error = error_of(ref);
      if (error && !is_consequence(error)) std::rethrow_exception(error);
      if (error && !consequence) consequence = error;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (ready == refs.size() || left.count() <= 0) break;
    wait_objects(refs, ready + 1, left);
  }
  if (consequence) std::rethrow_exception(consequence);
  throw std::logic_error("troupe: a run was asked for its error, but has none");
}

}  // namespace troupe::detail
