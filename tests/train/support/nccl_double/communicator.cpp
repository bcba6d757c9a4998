#include "support/nccl_double/communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "support/nccl_double/behaviour.hpp"
#include "support/nccl_double/stream.hpp"

namespace nccl_double {
namespace {

/// Another name for each part of each split; the same in all ranks.
std::uint64_t name_of_part(std::uint64_t name, std::uint64_t split, int color) {
  for (const auto each : {split, static_cast<std::uint64_t>(color)})
    name = (name ^ (each + 1)) * 0x9E3779B97F4A7C15ULL + (name >> 29);
  return name;
}

/// What a rank says of itself: to the rank of each entry, and what it hears from there.
template <class T>
std::vector<T> swap_with_all(Mesh& mesh, int rank, int size, const T& own, const Stop& stop,
                             End& end) {
  std::vector<T> all(static_cast<std::size_t>(size), own);
  auto sent = own;
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    auto& received = all[static_cast<std::size_t>(peer)];
    transfers.push_back({peer, true, reinterpret_cast<std::byte*>(&sent), sizeof sent, 0});
    transfers.push_back({peer, false, reinterpret_cast<std::byte*>(&received), sizeof received, 0});
  }
  end = mesh.exchange(transfers, stop);
  return all;
}

}  // namespace

Comm::Comm(std::uint64_t name, int rank, int size, int device)
    : name_(name), rank_(rank), size_(size), device_(device) {}

ncclResult_t Comm::refuse(ncclResult_t result, const std::string& text) {
  last_error_ = kept(text);
  return result;
}

ncclResult_t Comm::begin(std::function<ncclResult_t()> job) {
  auto before = ncclSuccess;
  if (!state_.compare_exchange_strong(before, ncclInProgress)) {
    if (before != ncclInProgress) return before;
    return refuse(ncclInvalidUsage, "a call while another is in progress");
  }
  if (job_.joinable()) job_.join();
  job_ = std::thread([this, job = std::move(job)] {
    const auto result = job();
    auto expected = ncclInProgress;  // an operation may have failed meanwhile
    state_.compare_exchange_strong(expected, result);
  });
  return ncclInProgress;
}

ncclResult_t Comm::result_of(End end) {
  switch (end) {
    case End::Complete:
      return ncclSuccess;
    case End::Lost:
      return refuse(ncclRemoteError, "a rank closed its connection");
    case End::Differ:
      return refuse(ncclInternalError, "the ranks' calls differ, or two are one rank");
    case End::Stopped:
      break;
  }
  return ncclSystemError;  // nobody asks any more
}

ncclResult_t Comm::connect(const Stop& stop) {
  const auto end = control_.connect(name_, 'c', rank_, size_, stop);
  if (end != End::Complete) return result_of(end);
  return result_of(data_.connect(name_, 'd', rank_, size_, stop));
}

/// NCCL refuses two ranks of one host on one device. NCCL_HOSTID tells hosts apart.
ncclResult_t Comm::check_devices(const Stop& stop) {
  struct Place {
    int device = 0;
    char host[60] = {};
  };
  Place own{.device = device_, .host = {}};
  if (const auto* host = std::getenv("NCCL_HOSTID"))
    std::strncpy(own.host, host, sizeof own.host - 1);
  auto end = End::Complete;
  const auto places = swap_with_all(control_, rank_, size_, own, stop, end);
  if (end != End::Complete) return result_of(end);
  const auto here = std::count_if(places.begin(), places.end(), [&](const auto& each) {
    return each.device == own.device && std::strcmp(each.host, own.host) == 0;
  });
  return here == 1 ? ncclSuccess
                   : refuse(ncclInvalidUsage, "Duplicate GPU detected: two ranks of a host on one");
}

ncclResult_t Comm::begin_init() {
  return begin([this] {
    if (stop_.wait(behaviour().init_takes)) return ncclSystemError;
    if (!behaviour().init_ends) stop_.wait();
    const auto connected = connect(stop_);
    return connected == ncclSuccess ? check_devices(stop_) : connected;
  });
}

ncclResult_t Comm::begin_operations(std::vector<Operation> operations, cudaStream_t stream) {
  const auto fault = take_fault();
  if (fault.result != ncclSuccess && fault.shows == Fault::Shows::AsResult)
    return refuse(fault.result, fault.text);
  if (finalized_) return refuse(ncclInvalidUsage, "an operation after ncclCommFinalize");
  if (stream_ == nullptr) stream_ = stream;
  if (stream_ != stream)
    return refuse(ncclInvalidUsage, "the operations of a communicator are on one stream");
  return begin([this, operations = std::move(operations), stream, fault] {
    if (stop_.wait(behaviour().enqueuing_takes)) return ncclSystemError;
    {
      const std::lock_guard lock(guard_);
      ++issued_;
    }
    queue_of(stream)->push(
        [self = shared_from_this(), operations, fault] { self->run(operations, fault); });
    return ncclSuccess;
  });
}

void Comm::run(const std::vector<Operation>& operations, const Fault& fault) {
  bool begins = false;
  {
    const std::lock_guard lock(guard_);
    running_ = begins = !stop_.is_set();
  }
  if (begins) {
    const auto result = perform(operations, fault);
    if (result != ncclSuccess && !stop_.is_set()) {
      state_ = result;
      stop_.wait();  // a kernel that waits for the others goes on until it is aborted
    }
  }
  const std::lock_guard lock(guard_);
  running_ = false;
  --issued_;
  changed_.notify_all();
}

ncclResult_t Comm::perform(const std::vector<Operation>& operations, const Fault& fault) {
  if (fault.result != ncclSuccess) return refuse(fault.result, fault.text);
  if (stop_.wait(behaviour().operations_take)) return ncclSystemError;
  while (nccl_double::operations() < behaviour().operations_await) {
    if (stop_.wait(milliseconds{1})) return ncclSystemError;
  }
  if (!behaviour().operations_end) stop_.wait();
  std::vector<Transfer> all;
  for (const auto& each : operations)
    all.insert(all.end(), each.transfers.begin(), each.transfers.end());
  const auto result = result_of(data_.exchange(all, stop_));
  if (result != ncclSuccess) return result;
  for (const auto& each : operations) {
    if (each.finish) each.finish();
  }
  return ncclSuccess;
}

ncclResult_t Comm::begin_split(int color, int key, ncclComm_t* part) {
  *part = nullptr;
  return begin([this, color, key, part] { return split(color, key, part); });
}

/// `part` is written late, as NCCL does it.
ncclResult_t Comm::split(int color, int key, ncclComm_t* part) {
  struct Choice {
    int color, key;
  };
  if (stop_.wait(behaviour().init_takes)) return ncclSystemError;
  if (!behaviour().init_ends) stop_.wait();
  auto end = End::Complete;
  const auto choices = swap_with_all(control_, rank_, size_, Choice{color, key}, stop_, end);
  if (end != End::Complete) return result_of(end);
  const auto number = splits_++;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int rank = 0; rank < size_; ++rank) {
    const auto& each = choices[static_cast<std::size_t>(rank)];
    if (each.color == color) members.emplace_back(each.key, rank);
  }
  std::sort(members.begin(), members.end());
  const auto own = std::find(members.begin(), members.end(), std::pair(key, rank_));
  auto made = std::make_shared<Comm>(name_of_part(name_, number, color),
                                     static_cast<int>(own - members.begin()),
                                     static_cast<int>(members.size()), device_);
  const auto connected = made->connect(stop_);
  if (connected == ncclSuccess) *part = new ncclComm(std::move(made));
  return connected;
}

ncclResult_t Comm::begin_finalize() {
  return begin([this] { return finalize(); });
}

/// Waits for what was enqueued, then for the other ranks to come to the same.
ncclResult_t Comm::finalize() {
  finalized_ = true;
  if (!behaviour().finalize_ends) stop_.wait();
  {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [this] { return issued_ == 0 || stop_.is_set(); });
  }
  auto end = End::Complete;
  swap_with_all(control_, rank_, size_, 'f', stop_, end);
  return result_of(end);
}

void Comm::end() {
  stop_.set();
  {
    std::unique_lock lock(guard_);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !running_; });
  }
  if (job_.joinable()) job_.join();
  data_.close();
  control_.close();
}

}  // namespace nccl_double
