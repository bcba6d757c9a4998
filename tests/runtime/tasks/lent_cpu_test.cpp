// Which threads lend the CPU of their process for all of a search.
#include <troupe/detail/trainable/lent_cpu.hpp>

#include <functional>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "objects/object.hpp"
#include "objects/process_context.hpp"

using namespace troupe;
using detail::CpuUse;
using detail::LentCpu;

namespace {

/// A process that runs a call, and has its CPU again at once.
class Lender final : public runtime::ProcessContext {
 public:
  Lender() { make_current(this); }
  ~Lender() override { make_current(nullptr); }

  runtime::ProcessId id() const override { return {}; }
  void on_loop(std::function<void()> then) override { then(); }
  bool is_on_loop() const override { return false; }
  runtime::StoreLink& store() override { throw std::logic_error("no value is stored here"); }
  runtime::ProcessId caller() const override { return {}; }
  bool runs_calls() const override { return true; }
  bool has_call() const override { return true; }
  void give_cpu_back() override { given.push_back(detail::cpu_use()); }
  detail::ObjectPtr take_cpu_again() override {
    ++taken;
    auto resumed = detail::Object::pending(0);
    resumed->complete(detail::Payload{});
    return resumed;
  }

  std::vector<CpuUse> given;  // of the thread that gave the CPU
  int taken = 0;
};

}  // namespace

TEST_CASE("the thread of a call lends its CPU for all of a search, and is told as a call's wait",
          "[runtime][tasks][cpus]") {
  Lender process;
  const detail::CpuUser user(CpuUse::OfCalls);
  {
    const LentCpu lent;
    CHECK(process.given == std::vector{CpuUse::OfCalls});
    CHECK(detail::cpu_use() == CpuUse::None);
    CHECK(process.taken == 0);
  }
  CHECK(process.taken == 1);
  CHECK(process.given.size() == 1);
  CHECK(detail::cpu_use() == CpuUse::OfCalls);
}

TEST_CASE("a search on a thread of the program's own lends in its waits alone",
          "[runtime][tasks][cpus]") {
  Lender process;
  {
    const LentCpu lent;
    CHECK(detail::cpu_use() == CpuUse::OfProgram);
  }
  CHECK(process.given.empty());
  CHECK(process.taken == 0);
}
