#include "collective/host/memory/local_group.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/futex.hpp"

namespace troupe::train {
namespace {

constexpr std::uint32_t kLeastSpins = 32;
// Of 40 to 140 cycles: about what a sleep and a wake-up cost here.
constexpr std::uint32_t kMostSpins = 2048;
// Every so many waits spin in full, to learn whether it helps again.
constexpr std::uint32_t kProbe = 32;
constexpr int kEnded = -2;  // in place of a pidfd
constexpr std::size_t kReasonBytes = 2048;

// Of Slot::closed.
constexpr std::uint32_t kClosed = 1;
constexpr std::uint32_t kLeft = 2;

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

void write_reason(char (&to)[kReasonBytes], std::string_view reason) {
  const auto length = std::min(reason.size(), kReasonBytes - 1);
  std::memcpy(to, reason.data(), length);
  to[length] = '\0';
}

}  // namespace

struct LocalGroup::Header {
  std::atomic<std::uint32_t> abort_state;  // 0: none, 1: being written, 2: `reason` can be read
  char reason[kReasonBytes];
  std::atomic<std::uint64_t> noticed_calls;  // up to which one a rank has said that it hangs
};

struct LocalGroup::Slot {
  alignas(128) std::atomic<std::uint32_t> step;
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> closed;  // kClosed, kLeft: the rank steps no more
  char why[kReasonBytes];             // to be read once it is kLeft
  alignas(128) Post posts[2];
};

LocalGroup::LocalGroup(Patience& patience, const std::string& name, std::size_t chunk_bytes)
    : patience_(patience),
      rank_(patience.gang().local_rank()),
      size_(patience.gang().local_size()),
      chunk_bytes_(round_up(chunk_bytes, 4096)),
      spins_(kMostSpins) {
  auto& gang = patience.gang();
  const auto nodes = gang.node_ranks();
  for (int r = 0; r < gang.size(); ++r) {
    if (nodes[static_cast<std::size_t>(r)] == gang.node_rank()) world_ranks_.push_back(r);
  }
  assert(static_cast<int>(world_ranks_.size()) == size_ &&
         world_ranks_[static_cast<std::size_t>(rank_)] == gang.rank());
  const auto ranks = static_cast<std::size_t>(size_);
  const auto bytes = round_up(sizeof(Header), 4096) + ranks * round_up(sizeof(Slot), 4096) +
                     2 * (ranks + 1) * chunk_bytes_;
  memory_ = std::make_unique<SharedMemory>(patience,
                                           fmt::format("{}/group/node{}", name, gang.node_rank()),
                                           bytes, world_ranks_.front());
  try {
    meet();
  } catch (...) {
    leave(text_of(std::current_exception()));  // those that come yet find this rank's slot
    throw;
  }
}

LocalGroup::~LocalGroup() {
  auto& mine = slot(rank_);
  if (mine.closed.load(std::memory_order_relaxed) == 0)
    mine.closed.store(kClosed, std::memory_order_release);
  os::futex_wake_all(mine.step);
  for (int fd : pidfds_) {
    if (fd >= 0) ::close(fd);
  }
}

// Everybody tells its process and takes hold of the others': a process that dies later is noticed
// at once.
void LocalGroup::meet() {
  pidfds_.assign(static_cast<std::size_t>(size_), -1);
  slot(rank_).pid.store(::getpid(), std::memory_order_relaxed);
  wait_all(arrive());
  memory_->close_descriptor();
  for (int r = 0; r < size_; ++r) {
    const auto pid = slot(r).pid.load(std::memory_order_relaxed);
    if (pid == ::getpid()) continue;
    const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    // Without the system call (-1) the gang's broken word alone tells.
    pidfds_[static_cast<std::size_t>(r)] = fd < 0 && errno == ESRCH ? kEnded : fd;
  }
}

LocalGroup::Header& LocalGroup::header() const {
  return *std::launder(reinterpret_cast<Header*>(memory_->data()));
}

LocalGroup::Slot& LocalGroup::slot(int local) const {
  const auto at = round_up(sizeof(Header), 4096) +
                  static_cast<std::size_t>(local) * round_up(sizeof(Slot), 4096);
  return *std::launder(reinterpret_cast<Slot*>(memory_->data() + at));
}

LocalGroup::Post& LocalGroup::post(int local, std::uint64_t call) const {
  return slot(local).posts[call & 1];
}

std::byte* LocalGroup::stage(int local, std::uint64_t chunk) const {
  const auto slots = round_up(sizeof(Header), 4096) +
                     static_cast<std::size_t>(size_) * round_up(sizeof(Slot), 4096);
  return memory_->data() + slots +
         (2 * static_cast<std::size_t>(local) + (chunk & 1)) * chunk_bytes_;
}

std::byte* LocalGroup::result(std::uint64_t chunk) const { return stage(size_, chunk); }

void LocalGroup::announce(const Announcement& what, Place place) {
  auto& mine = post(rank_, what.sequence);
  mine.what = what;
  mine.place = place;
}

bool LocalGroup::check_announcements(const Announcement& what, Place place) const {
  bool together = place.region >= 0;
  for (int r = 0; r < size_; ++r) {
    const auto& theirs = post(r, what.sequence);
    if (!(theirs.what == what)) check_same(world_rank(rank_), what, world_rank(r), theirs.what);
    together = together && theirs.place == place;
  }
  return together;
}

std::uint32_t LocalGroup::arrive() {
  auto& mine = slot(rank_);
  ++step_;
  // Sequentially consistent, and so is the sleeper's side: either it sees the new step or this
  // thread sees the sleeper.
  mine.step.store(step_, std::memory_order_seq_cst);
  if (mine.sleepers.load(std::memory_order_seq_cst) != 0) os::futex_wake_all(mine.step);
  return step_;
}

bool LocalGroup::reached(int local, std::uint32_t step) const {
  return static_cast<std::int32_t>(slot(local).step.load(std::memory_order_acquire) - step) >= 0;
}

void LocalGroup::wait_all(std::uint32_t step) {
  for (int r = 0; r < size_; ++r) wait_for(r, step);
}

void LocalGroup::wait_for(int local, std::uint32_t step) {
  if (reached(local, step)) return;
  const auto spins = ++waits_ % kProbe == 0 ? kMostSpins : spins_;
  for (std::uint32_t i = 0; i < spins; ++i) {
    if (reached(local, step)) {
      spins_ = std::min(kMostSpins, std::max(spins_ + spins_ / 8, 2 * i) + 1);
      return;
    }
    os::relax();
  }
  spins_ = std::max(kLeastSpins, spins_ / 2);
  sleep_until(local, step);
}

void LocalGroup::sleep_until(int local, std::uint32_t step) {
  auto& theirs = slot(local);
  while (!reached(local, step)) {
    check_peers(step);
    theirs.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const auto seen = theirs.step.load(std::memory_order_seq_cst);
    if (static_cast<std::int32_t>(seen - step) < 0)
      os::futex_wait(theirs.step, seen, Patience::kSlice);
    theirs.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void LocalGroup::check_peers(std::uint32_t step) {
  // A rank may abort after its last step: what it had come to by then counts.
  if (auto reason = aborted(); reason && !missing(step).empty()) patience_.throw_gone(*reason);
  const bool expired = patience_.expired();
  for (int r = 0; r < static_cast<int>(pidfds_.size()); ++r) {
    // A rank that came as far as it is waited for, and then ended, has done its part.
    if (has_ended(r) && !reached(r, step)) throw_ended(r);
  }
  if (expired) patience_.throw_timed_out(missing(step));
  if (!patience_.hangs()) return;
  if (const auto ranks = missing(step); !ranks.empty()) patience_.note_hang(ranks);
}

bool LocalGroup::claim_notice(std::uint64_t call) {
  auto& noticed = header().noticed_calls;
  auto seen = noticed.load();
  while (seen <= call) {
    if (noticed.compare_exchange_weak(seen, call + 1)) return true;
  }
  return false;
}

bool LocalGroup::has_ended(int local) const {
  if (slot(local).closed.load(std::memory_order_acquire) != 0) return true;
  pollfd end{pidfds_[static_cast<std::size_t>(local)], POLLIN, 0};
  return end.fd == kEnded || (end.fd >= 0 && ::poll(&end, 1, 0) > 0);
}

void LocalGroup::throw_ended(int local) const {
  if (auto reason = aborted()) patience_.throw_gone(*reason);
  const auto closed = slot(local).closed.load(std::memory_order_acquire);
  if (closed == kLeft) patience_.throw_gone(slot(local).why);
  if (closed == kClosed) {
    patience_.throw_gone(fmt::format(
        "rank {} has closed its communicator, as a function does that returns", world_rank(local)));
  }
  patience_.throw_gone(
      fmt::format("rank {} (pid {}) has ended", world_rank(local), slot(local).pid.load()));
}

std::vector<int> LocalGroup::missing(std::uint32_t step) const {
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r) {
    if (!reached(r, step)) ranks.push_back(world_rank(r));
  }
  return ranks;
}

void LocalGroup::leave(std::string_view why) {
  auto& mine = slot(rank_);
  write_reason(mine.why, why);
  mine.closed.store(kLeft, std::memory_order_release);
  os::futex_wake_all(mine.step);
}

void LocalGroup::abort(std::string_view reason) {
  auto& shared = header();
  std::uint32_t none = 0;
  if (shared.abort_state.compare_exchange_strong(none, 1)) {
    write_reason(shared.reason, reason);
    shared.abort_state.store(2, std::memory_order_release);
  }
  for (int r = 0; r < size_; ++r) os::futex_wake_all(slot(r).step);
}

std::optional<std::string> LocalGroup::aborted() const {
  if (header().abort_state.load(std::memory_order_acquire) != 2) return std::nullopt;
  return std::string(header().reason);
}

}  // namespace troupe::train
