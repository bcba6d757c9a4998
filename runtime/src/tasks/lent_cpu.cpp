#include <troupe/detail/trainable/lent_cpu.hpp>

#include "objects/blocking.hpp"
#include "objects/process_context.hpp"

namespace troupe::detail {

using runtime::ProcessContext;

namespace {

/// -> whether it is lent. Called while the thread still is one of calls, so that the head is told of
/// the wait of a call.
bool lend_cpu_of_call() {
  if (cpu_use() != CpuUse::OfCalls) return false;
  ProcessContext::current().give_cpu_back();
  return true;
}

}  // namespace

LentCpu::LentCpu() : lends_(lend_cpu_of_call()), user_(lends_ ? CpuUse::None : cpu_use()) {}

LentCpu::~LentCpu() {
  if (!lends_) return;
  runtime::wait_for_cpu(
      ProcessContext::current(), [] {}, [] {});
}

}  // namespace troupe::detail
