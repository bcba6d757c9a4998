#include <troupe/detail/trainable/lent_cpu.hpp>

#include "objects/doorbell.hpp"
#include "objects/object.hpp"
#include "objects/process_context.hpp"

namespace troupe::detail {

using runtime::ProcessContext;

LentCpu::LentCpu() : lends_(uses_cpu()) {
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
