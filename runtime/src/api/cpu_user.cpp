#include <utility>

#include <troupe/detail/core.hpp>

namespace troupe::detail {
namespace {

thread_local CpuUse use_here = CpuUse::OfProgram;

}  // namespace

CpuUse cpu_use() { return use_here; }

CpuUser::CpuUser(CpuUse use) : before_(std::exchange(use_here, use)) {}
CpuUser::~CpuUser() { use_here = before_; }

}  // namespace troupe::detail
