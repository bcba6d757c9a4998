#include "store/memory/write_faults.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <unistd.h>

namespace troupe::store {
namespace {

struct Range {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
};

std::array<Range, 64> ranges;  // read by the handler, which takes no lock
std::mutex writers;

constexpr std::string_view kWhy =
    "troupe: this process has written to a value of the object store, which others read too: it is "
    "read-only. Copy it first, or make a troupe::NewArray and write to that.\n";

bool is_read_only(std::uintptr_t address) {
  for (const auto& range : ranges) {
    const auto begin = range.begin.load();
    if (begin != 0 && begin <= address && address < range.end.load()) return true;
  }
  return false;
}

/// Once: the signal has its default action again, and comes anew as this returns.
void on_fault(int signal, siginfo_t* info, void*) {
  const bool faulted = info->si_code > 0;
  if (faulted && is_read_only(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWhy.data(), kWhy.size());
  }
  if (!faulted) ::raise(signal);
}

void install() {
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
      now.sa_handler != SIG_DFL)
    return;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND);
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGSEGV, &ours, nullptr);
}

std::uintptr_t address_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}

}  // namespace

void explain_writes_to(std::span<const std::byte> read_only) {
  const std::lock_guard lock(writers);
  static std::once_flag installed;
  std::call_once(installed, install);
  for (auto& range : ranges) {
    if (range.begin.load() != 0) continue;
    range.end.store(address_of(read_only) + read_only.size());
    range.begin.store(address_of(read_only));
    return;
  }
}

void forget_read_only(std::span<const std::byte> read_only) {
  const std::lock_guard lock(writers);
  for (auto& range : ranges) {
    if (range.begin.load() == address_of(read_only)) range.begin.store(0);
  }
}

}  // namespace troupe::store
