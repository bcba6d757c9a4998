#pragma once

#include <atomic>
#include <cstddef>
#include <stdexcept>

#include <c10/core/CPUAllocator.h>

namespace troupe::testing {

/// LibTorch's allocator of main memory, which counts what it gives, and can be told to fail. To be
/// used in forked ranks only: it stays in its place. Any thread.
class FailingAllocator final : public c10::Allocator {
 public:
  /// What it throws. It is no std::bad_alloc, as LibTorch throws an error of its own.
  static constexpr const char* kNoMemory = "there is no memory left";

  /// In the place of LibTorch's from here on.
  static FailingAllocator& installed() {
    static FailingAllocator allocator;
    c10::SetCPUAllocator(&allocator, 1);
    return allocator;
  }

  /// The number-th allocation from now on fails, and the ones behind it do not; 0: none fails.
  void fail_at(std::size_t number) {
    given_ = 0;
    fails_at_ = number;
  }
  /// All of this size fail.
  void fail_for(std::size_t bytes) { fails_for_ = bytes; }
  /// Memory that was given and not given back, in pieces.
  std::ptrdiff_t living() const { return living_; }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return real_->allocate(bytes);
    if (++given_ == fails_at_ || bytes == fails_for_) throw std::runtime_error(kNoMemory);
    auto* const piece = new Piece{real_->allocate(bytes), living_};
    ++living_;
    return {piece->memory.get(), piece, &give_back, piece->memory.device()};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    real_->copy_data(to, from, bytes);
  }

 private:
  struct Piece {
    c10::DataPtr memory;
    std::atomic<std::ptrdiff_t>& living;
  };
  static void give_back(void* piece) {
    auto* const own = static_cast<Piece*>(piece);
    --own->living;
    delete own;
  }

  FailingAllocator() = default;

  c10::Allocator* const real_ = c10::GetCPUAllocator();
  std::atomic<std::size_t> given_{0}, fails_at_{0}, fails_for_{0};
  std::atomic<std::ptrdiff_t> living_{0};
};

}  // namespace troupe::testing
