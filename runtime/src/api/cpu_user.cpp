#include <utility>

#include <troupe/detail/core.hpp>

namespace troupe::detail {
namespace {

thread_local bool uses = false;

}  // namespace

bool uses_cpu() { return uses; }

CpuUser::CpuUser(bool uses_cpu) : before_(std::exchange(uses, uses_cpu)) {}
CpuUser::~CpuUser() { uses = before_; }

}  // namespace troupe::detail
