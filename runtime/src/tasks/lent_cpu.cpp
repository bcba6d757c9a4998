#include <troupe/detail/trainable/lent_cpu.hpp>

#include "objects/doorbell.hpp"
#include "objects/object.hpp"
#include "objects/process_context.hpp"

namespace troupe::detail {

using runtime::ProcessContext;

namespace {

/// A thread of the program's own that searches is waited for by the call whose CPU it is.
bool has_cpu_to_lend() {
  const auto use = cpu_use();
  const auto* process = ProcessContext::maybe();
  return use == CpuUse::OfCalls || (use == CpuUse::OfProgram && process && process->has_call());
}

}  // namespace

LentCpu::LentCpu() : lends_(has_cpu_to_lend()) {
  if (lends_) ProcessContext::current().give_cpu_back();
}

LentCpu::~LentCpu() {
  if (!lends_) return;
  auto& process = ProcessContext::current();
  const auto resumed = process.take_cpu_again();
  runtime::wait([&] { return resumed->ready(); }, std::nullopt);
  process.has_cpu_again();
}

}  // namespace troupe::detail
