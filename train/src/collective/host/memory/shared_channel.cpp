#include "collective/host/memory/shared_channel.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <new>

#include "os/futex.hpp"

namespace troupe::train {

/// Counters of bytes, which wrap around. `sleepers` of each side wait for the other's counter to
/// move.
struct SharedChannel::Pipe {
  alignas(128) std::atomic<std::uint32_t> written;
  std::atomic<std::uint32_t> taker_sleeps;
  alignas(128) std::atomic<std::uint32_t> taken;
  std::atomic<std::uint32_t> putter_sleeps;
};

namespace {

constexpr std::size_t kHeadBytes = 4096;  // of each pipe

void advance(std::atomic<std::uint32_t>& counter, std::size_t bytes,
             const std::atomic<std::uint32_t>& sleeps) {
  // Sequentially consistent, and so is the sleeper's side: either it sees the bytes or this thread
  // sees the sleeper.
  counter.fetch_add(static_cast<std::uint32_t>(bytes), std::memory_order_seq_cst);
  if (sleeps.load(std::memory_order_seq_cst) != 0) os::futex_wake_all(counter);
}

template <class Ready>
void sleep_on(const std::atomic<std::uint32_t>& counter, std::atomic<std::uint32_t>& sleeps,
              Ready ready, std::chrono::milliseconds slice) {
  sleeps.store(1, std::memory_order_seq_cst);
  const auto seen = counter.load(std::memory_order_seq_cst);
  if (!ready(seen)) os::futex_wait(counter, seen, slice);
  sleeps.store(0, std::memory_order_seq_cst);
}

}  // namespace

SharedChannel::SharedChannel(Patience& patience, LocalGroup& group, const std::string& key,
                             int peer, int local, std::size_t capacity,
                             const std::function<void()>& stop)
    : Channel(peer), group_(group), local_(local), capacity_(capacity) {
  assert((capacity & (capacity - 1)) == 0 && capacity <= (1u << 31));
  const int rank = patience.gang().rank();
  const bool maker = rank < peer;
  memory_ = std::make_unique<SharedMemory>(patience, key, 2 * (kHeadBytes + capacity),
                                           std::min(rank, peer));
  out_ = &pipe(maker ? 0 : 1);
  in_ = &pipe(maker ? 1 : 0);
  // The maker's descriptor is needed until the other one has opened it.
  std::byte opened{};
  if (maker)
    exchange(patience, stop, *this, {}, *this, {&opened, 1});
  else
    exchange(patience, stop, *this, {&opened, 1}, *this, {});
  memory_->close_descriptor();
}

SharedChannel::Pipe& SharedChannel::pipe(int index) const {
  return *std::launder(reinterpret_cast<Pipe*>(memory_->data() + static_cast<std::size_t>(index) *
                                                                     (kHeadBytes + capacity_)));
}

std::byte* SharedChannel::data_of(const Pipe& pipe) const {
  return memory_->data() + (&pipe == &this->pipe(0) ? 0 : kHeadBytes + capacity_) + kHeadBytes;
}

bool SharedChannel::put(std::span<const std::byte>& out) {
  const auto written = out_->written.load(std::memory_order_relaxed);
  const auto used = written - out_->taken.load(std::memory_order_acquire);
  const auto bytes = std::min<std::size_t>(capacity_ - used, out.size());
  if (bytes == 0) return false;
  const auto at = written & (capacity_ - 1);
  const auto first = std::min(bytes, capacity_ - at);
  std::memcpy(data_of(*out_) + at, out.data(), first);
  std::memcpy(data_of(*out_), out.data() + first, bytes - first);
  advance(out_->written, bytes, out_->taker_sleeps);
  out = out.subspan(bytes);
  return true;
}

bool SharedChannel::take(std::span<std::byte>& in) {
  const auto taken = in_->taken.load(std::memory_order_relaxed);
  const auto there = in_->written.load(std::memory_order_acquire) - taken;
  const auto bytes = std::min<std::size_t>(there, in.size());
  if (bytes == 0) return false;
  const auto at = taken & (capacity_ - 1);
  const auto first = std::min(bytes, capacity_ - at);
  std::memcpy(in.data(), data_of(*in_) + at, first);
  std::memcpy(in.data() + first, data_of(*in_), bytes - first);
  advance(in_->taken, bytes, in_->putter_sleeps);
  in = in.subspan(bytes);
  return true;
}

void SharedChannel::wait_to_put(std::chrono::milliseconds slice) {
  const auto written = out_->written.load(std::memory_order_relaxed);
  const auto room = [&](std::uint32_t taken) { return written - taken < capacity_; };
  sleep_on(out_->taken, out_->putter_sleeps, room, slice);
}

void SharedChannel::wait_to_take(std::chrono::milliseconds slice) {
  const auto taken = in_->taken.load(std::memory_order_relaxed);
  sleep_on(
      in_->written, in_->taker_sleeps, [&](std::uint32_t written) { return written != taken; },
      slice);
}

}  // namespace troupe::train
