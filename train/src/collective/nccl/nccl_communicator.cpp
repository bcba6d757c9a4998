#include "collective/nccl/nccl_communicator.hpp"

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include <troupe/detail/failed_calls.hpp>
#include "collective/nccl/cuda_error.hpp"
#include "collective/nccl/nccl_error.hpp"
#include "collective/sub_gang.hpp"

namespace troupe::train {
namespace {

using Clock = std::chrono::steady_clock;
// A pause lasts twice as long as it says, which is little of what was waited before it.
constexpr std::chrono::microseconds kSpin{500};
constexpr std::chrono::microseconds kPause{50};
constexpr std::chrono::seconds kGoodbye{5};  // for the other ranks to come to the destructor

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::Int8:
      return ncclInt8;
    case DataType::UInt8:
      return ncclUint8;
    case DataType::Int32:
      return ncclInt32;
    case DataType::Int64:
      return ncclInt64;
    case DataType::Float16:
      return ncclFloat16;
    case DataType::BFloat16:
      return ncclBfloat16;
    case DataType::Float32:
      return ncclFloat32;
    case DataType::Float64:
      return ncclFloat64;
  }
  return ncclUint8;
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return ncclSum;
    case ReduceOp::Average:
      return ncclAvg;
    case ReduceOp::Min:
      return ncclMin;
    case ReduceOp::Max:
      return ncclMax;
    case ReduceOp::Product:
      return ncclProd;
  }
  return ncclSum;
}

/// NCCL does as one what `fill(add)` adds. -> the first error, or how the whole is.
template <class Fill>
ncclResult_t together(Fill fill) {
  auto state = ncclGroupStart();
  fill([&state](ncclResult_t each) {
    if (state == ncclSuccess && each != ncclInProgress) state = each;
  });
  const auto ended = ncclGroupEnd();
  return state == ncclSuccess ? ended : state;
}

/// Spins, then pauses, until `done` or `leave` throws.
template <class Done, class Leave>
void poll_until(Done done, Leave leave) {
  const auto start = Clock::now();
  while (!done()) {
    leave();
    if (Clock::now() - start > kSpin) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

NcclCommunicator::NcclCommunicator(GangContext& gang, NcclOptions options)
    : gang_(gang),
      options_(std::move(options)),
      patience_(gang, {options_.timeout, options_.warn_after},
                fmt::format("collective/{}", options_.name), false) {
  start([this] {
    choose_device();
    prepare_device();
    connect();
    patience_.end();
  });
}

NcclCommunicator::NcclCommunicator(std::unique_ptr<GangContext> own_gang, NcclOptions options,
                                   int device, NcclHandle comm)
    : own_gang_(std::move(own_gang)),
      gang_(*own_gang_),
      options_(std::move(options)),
      patience_(gang_, {options_.timeout, options_.warn_after},
                fmt::format("collective/{}", options_.name), false),
      device_(device),
      comm_(std::move(comm)) {
  start([this] { prepare_device(); });
}

// The other ranks wait for this one, in their start or in their first call of what was split off.
template <class Body>
void NcclCommunicator::start(Body body) {
  patience_.begin({});
  try {
    body();
  } catch (...) {
    patience_.tell_end(text_of(std::current_exception()));
    throw;
  }
  listening_ =
      troupe::detail::on_failed_call([this](const Failure& call) { leave(left_by(rank(), call)); });
}

void NcclCommunicator::choose_device() {
  const int devices = visible_devices(rank());
  device_ = options_.device >= 0 ? options_.device : gang_.local_rank();
  if (device_ < devices) return;
  throw Impossible(Failure{
      .kind = Failure::Kind::Impossible,
      .message = fmt::format("rank {} is to use GPU {}, and this process sees {}: give the gang "
                             "a GPU for each rank of a node, or name one in NcclOptions::device",
                             rank(), device_, devices)});
}

void NcclCommunicator::prepare_device() {
  check_cuda(cudaSetDevice(device_), "choosing the GPU", rank());
  stream_ = make_stream(rank());
  inputs_ready_ = make_event(rank());
  complete_ = make_event(rank());
  token_ = make_device_memory<std::int32_t>("device memory for the barrier", rank());
}

void NcclCommunicator::connect() {
  const auto key = fmt::format("collective/{}/id", options_.name);
  ncclUniqueId id{};
  if (rank() == 0) {
    check_nccl(ncclGetUniqueId(&id), nullptr, "making an id", rank());
    gang_.rendezvous().set(key, {id.internal, sizeof id.internal});
  } else {
    const auto text = patience_.await(key, 0);
    std::memcpy(id.internal, text.data(), std::min(text.size(), sizeof id.internal));
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  wait_enqueued(ncclCommInitRankConfig(comm_.address(), size(), id, rank(), &config));
}

// Ranks that wait for this one see nothing of an end but what is told.
NcclCommunicator::~NcclCommunicator() {
  listening_.reset();
  if (!comm_ || failure_) return;
  if (abort_state_.load(std::memory_order_acquire) == 2) {
    patience_.tell_end(abort_reason_);
  } else if (std::uncaught_exceptions() > exceptions_) {
    patience_.tell_end(fmt::format(
        "rank {} has closed its communicator, as an exception left the function that held it",
        rank()));
  } else if (finalized()) {
    comm_.destroy();
  } else {
    patience_.tell_end(fmt::format("rank {} has closed its communicator", rank()));
  }
}

bool NcclCommunicator::finalized() {
  const auto until = Clock::now() + kGoodbye;
  auto state = ncclCommFinalize(comm_.get());
  while (state == ncclInProgress && Clock::now() < until && !patience_.gang_is_broken()) {
    std::this_thread::sleep_for(kPause);
    if (ncclCommGetAsyncError(comm_.get(), &state) != ncclSuccess) break;
  }
  return state == ncclSuccess;
}

void NcclCommunicator::check_leaving() {
  if (abort_state_.load(std::memory_order_acquire) == 2) patience_.throw_gone(abort_reason_);
  // Which ranks are missing, NCCL does not tell: the roll call does, and of a message it can only
  // be the other rank.
  const auto& what = patience_.what();
  const bool message = what.kind == CallKind::Send || what.kind == CallKind::Recv;
  patience_.check([&] { return message ? std::vector{what.root} : std::vector<int>{}; });
}

void NcclCommunicator::wait_for(const ncclComm_t& comm, ncclResult_t result) {
  const auto what = to_string(patience_.what());
  check_nccl(result, comm, what, rank());
  poll_until(
      [&] {
        check_nccl(ncclCommGetAsyncError(comm, &result), comm, what, rank());
        check_nccl(result, comm, what, rank());
        return result == ncclSuccess;
      },
      [this] { check_leaving(); });
}

void NcclCommunicator::wait_complete(cudaEvent_t done) {
  poll_until(
      [this, done] {
        const auto state = cudaEventQuery(done);
        if (state == cudaSuccess) return true;
        if (state != cudaErrorNotReady) check_cuda(state, to_string(patience_.what()), rank());
        auto failed = ncclSuccess;
        if (ncclCommGetAsyncError(comm_.get(), &failed) != ncclSuccess) return false;
        // The error is that of a later call where this one has completed meanwhile.
        if (failed != ncclSuccess && cudaEventQuery(done) == cudaSuccess) return true;
        check_nccl(failed, comm_.get(), to_string(patience_.what()), rank());
        return false;
      },
      [this] { check_leaving(); });
}

template <class Enqueue>
void NcclCommunicator::run(Announcement what, Enqueue enqueue) {
  const auto inside = entrance_.enter(rank(), what);
  if (failure_) std::rethrow_exception(failure_);
  what.sequence = calls_++;
  attempt(what, enqueue);
}

template <class Enqueue>
void NcclCommunicator::run_message(Announcement what, Enqueue enqueue) {
  const auto inside = entrance_.enter(rank(), what);
  if (failure_) std::rethrow_exception(failure_);
  what.sequence = messages_[what.root]++;
  attempt(what, enqueue);
}

template <class Body>
void NcclCommunicator::ending_with_errors_of(Body body) {
  try {
    body();
  } catch (...) {
    failure_ = std::current_exception();
    comm_.abort();
    begun_.clear();
    patience_.tell_end(text_of(failure_));
    throw;
  }
}

template <class Enqueue>
void NcclCommunicator::enqueue_after(cudaEvent_t filled, Enqueue enqueue, cudaEvent_t done) {
  check_leaving();
  check_cuda(cudaStreamWaitEvent(stream_.get(), filled, 0), "waiting for the inputs", rank());
  wait_enqueued(enqueue());
  check_cuda(cudaEventRecord(done, stream_.get()), "marking the end", rank());
}

template <class Enqueue>
void NcclCommunicator::attempt(const Announcement& what, Enqueue enqueue) {
  ending_with_errors_of([&] {
    wait_for_begun();
    patience_.begin(what);
    check_cuda(cudaSetDevice(device_), "choosing the GPU", rank());
    check_cuda(cudaEventRecord(inputs_ready_.get(), cudaStreamLegacy), "marking the inputs",
               rank());
    enqueue_after(inputs_ready_.get(), enqueue, complete_.get());
    wait_complete(complete_.get());
    patience_.end();
  });
}

void NcclCommunicator::begin_average(void* data, std::size_t count, DataType type, void* filled) {
  Announcement what{
      .count = count, .kind = CallKind::AllReduce, .type = type, .op = ReduceOp::Average};
  const auto inside = entrance_.enter(rank(), what);
  if (failure_) std::rethrow_exception(failure_);
  what.sequence = calls_++;
  ending_with_errors_of([&] {
    patience_.begin(what);
    check_cuda(cudaSetDevice(device_), "choosing the GPU", rank());
    if (free_.empty()) free_.push_back(make_event(rank()));
    begun_.push_back({what, std::move(free_.back())});
    free_.pop_back();
    const auto enqueue = [&] {
      return ncclAllReduce(data, data, count, nccl_type(type), ncclAvg, comm_.get(), stream_.get());
    };
    enqueue_after(static_cast<cudaEvent_t>(filled), enqueue, begun_.back().done.get());
  });
}

void NcclCommunicator::complete() {
  if (begun_.empty()) return;
  const auto inside = entrance_.enter(rank(), begun_.front().what);
  if (failure_) std::rethrow_exception(failure_);
  ending_with_errors_of([&] { wait_for_begun(); });
}

void NcclCommunicator::give_up(std::string_view why) noexcept {
  if (begun_.empty()) return;
  try {
    abort(why);
    complete();
  } catch (...) {
    // It has ended.
  }
}

void NcclCommunicator::wait_for_begun() {
  while (!begun_.empty()) {
    auto& [what, done] = begun_.front();
    patience_.begin(what);
    wait_complete(done.get());
    patience_.end();
    free_.push_back(std::move(done));
    begun_.pop_front();
  }
}

void NcclCommunicator::abort(std::string_view reason) {
  end_with(fmt::format("rank {} ended the communicator: {}", rank(), reason));
}

void NcclCommunicator::end_with(std::string reason) {
  int none = 0;
  if (!abort_state_.compare_exchange_strong(none, 1)) return;
  abort_reason_ = std::move(reason);
  abort_state_.store(2, std::memory_order_release);
}

void NcclCommunicator::leave(Failure why) {
  const auto inside = entrance_.enter_to_leave();
  if (!inside) return end_with(std::move(why.message));  // another thread's call ends by it
  if (failure_) return;
  patience_.tell_end(why.message);
  failure_ = std::make_exception_ptr(GangBroken(std::move(why)));
  comm_.abort();
}

void NcclCommunicator::barrier() {
  run({.kind = CallKind::Barrier}, [&] {
    return ncclAllReduce(token_.get(), token_.get(), 1, ncclInt32, ncclSum, comm_.get(),
                         stream_.get());
  });
}

void NcclCommunicator::do_all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) {
  run({.count = count, .kind = CallKind::AllReduce, .type = type, .op = op}, [&] {
    return ncclAllReduce(data, data, count, nccl_type(type), nccl_op(op), comm_.get(),
                         stream_.get());
  });
}

void NcclCommunicator::do_broadcast(void* data, std::size_t count, DataType type, int root) {
  run({.count = count, .kind = CallKind::Broadcast, .type = type, .root = root}, [&] {
    return ncclBroadcast(data, data, count, nccl_type(type), root, comm_.get(), stream_.get());
  });
}

void NcclCommunicator::do_all_gather(const void* in, void* out, std::size_t count, DataType type) {
  run({.count = count, .kind = CallKind::AllGather, .type = type},
      [&] { return ncclAllGather(in, out, count, nccl_type(type), comm_.get(), stream_.get()); });
}

void NcclCommunicator::do_reduce_scatter(const void* in, void* out, std::size_t count,
                                         DataType type, ReduceOp op) {
  run({.count = count, .kind = CallKind::ReduceScatter, .type = type, .op = op}, [&] {
    return ncclReduceScatter(in, out, count, nccl_type(type), nccl_op(op), comm_.get(),
                             stream_.get());
  });
}

void NcclCommunicator::do_send(const void* data, std::size_t count, DataType type, int to) {
  run_message({.count = count, .kind = CallKind::Send, .type = type, .root = to}, [&] {
    return ncclSend(data, count, nccl_type(type), to, comm_.get(), stream_.get());
  });
}

void NcclCommunicator::do_recv(void* data, std::size_t count, DataType type, int from) {
  run_message({.count = count, .kind = CallKind::Recv, .type = type, .root = from}, [&] {
    return ncclRecv(data, count, nccl_type(type), from, comm_.get(), stream_.get());
  });
}

void NcclCommunicator::do_all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  run({.count = count, .kind = CallKind::AllToAll, .type = type}, [&] {
    const auto bytes = count * size_of(type);
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(out);
    return together([&](const auto& add) {
      for (int r = 0; r < size(); ++r) {
        const auto part = static_cast<std::size_t>(r) * bytes;
        add(ncclSend(from + part, count, nccl_type(type), r, comm_.get(), stream_.get()));
        add(ncclRecv(to + part, count, nccl_type(type), r, comm_.get(), stream_.get()));
      }
    });
  });
}

void NcclCommunicator::do_all_gather_parts(const void* in, void* out,
                                           std::span<const std::size_t> counts, DataType type) {
  const auto all = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  run({.count = all, .kind = CallKind::AllGatherParts, .type = type}, [&] {
    auto* to = static_cast<std::byte*>(out);
    return together([&](const auto& add) {
      for (int r = 0; r < size(); ++r) {
        const auto count = counts[static_cast<std::size_t>(r)];
        add(ncclBroadcast(in, to, count, nccl_type(type), r, comm_.get(), stream_.get()));
        to += count * size_of(type);
      }
    });
  });
}

void NcclCommunicator::do_reduce(const void* in, void* out, std::size_t count, DataType type,
                                 ReduceOp op, int root) {
  run({.count = count, .kind = CallKind::Reduce, .type = type, .op = op, .root = root}, [&] {
    return ncclReduce(in, out, count, nccl_type(type), nccl_op(op), root, comm_.get(),
                      stream_.get());
  });
}

void NcclCommunicator::do_gather(const void* in, void* out, std::size_t count, DataType type,
                                 int root) {
  run({.count = count, .kind = CallKind::Gather, .type = type, .root = root}, [&] {
    const auto bytes = count * size_of(type);
    return together([&](const auto& add) {
      add(ncclSend(in, count, nccl_type(type), root, comm_.get(), stream_.get()));
      for (int r = 0; rank() == root && r < size(); ++r) {
        auto* part = static_cast<std::byte*>(out) + static_cast<std::size_t>(r) * bytes;
        add(ncclRecv(part, count, nccl_type(type), r, comm_.get(), stream_.get()));
      }
    });
  });
}

void NcclCommunicator::do_scatter(const void* in, void* out, std::size_t count, DataType type,
                                  int root) {
  run({.count = count, .kind = CallKind::Scatter, .type = type, .root = root}, [&] {
    const auto bytes = count * size_of(type);
    return together([&](const auto& add) {
      for (int r = 0; rank() == root && r < size(); ++r) {
        const auto* part = static_cast<const std::byte*>(in) + static_cast<std::size_t>(r) * bytes;
        add(ncclSend(part, count, nccl_type(type), r, comm_.get(), stream_.get()));
      }
      add(ncclRecv(out, count, nccl_type(type), root, comm_.get(), stream_.get()));
    });
  });
}

std::unique_ptr<Communicator> NcclCommunicator::do_split(int color, int key) {
  auto options = options_;
  options.name = fmt::format("{}/split{}/{}", options_.name, splits_, color);
  std::unique_ptr<GangContext> gang;
  NcclHandle part;
  run({.kind = CallKind::Split}, [&] {
    gang = split_gang(patience_, fmt::format("collective/{}/split{}", options_.name, splits_++),
                      color, key);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    wait_enqueued(ncclCommSplit(comm_.get(), gang ? color : NCCL_SPLIT_NOCOLOR, key, part.address(),
                                &config));
    if (gang) wait_for(part.get(), ncclSuccess);
    return ncclSuccess;
  });
  if (!gang) return nullptr;
  return std::make_unique<NcclCommunicator>(std::move(gang), std::move(options), device_,
                                            std::move(part));
}

std::unique_ptr<Communicator> make_nccl_communicator(GangContext& gang, NcclOptions options) {
  return std::make_unique<NcclCommunicator>(gang, std::move(options));
}

}  // namespace troupe::train
