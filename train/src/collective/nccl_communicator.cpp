#include "collective/nccl_communicator.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "collective/cuda_error.hpp"
#include "collective/nccl_error.hpp"

namespace troupe::train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSpin{50};  // a short reduction is complete by then
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
    : gang_(gang), options_(std::move(options)), patience_(gang, options_.timeout) {
  const int devices = visible_devices(rank());
  device_ = options_.device >= 0 ? options_.device : gang.local_rank();
  if (device_ >= devices) {
    throw Impossible(
        Failure{.kind = Failure::Kind::Impossible,
                .message = fmt::format("rank {} is to use GPU {}, and this process sees {}: give the gang a GPU for "
                                       "each rank of a node, or name one in NcclOptions::device",
                                       rank(), device_, devices)});
  }
  try {
    connect();
  } catch (...) {
    give_up();
    throw;
  }
}

void NcclCommunicator::connect() {
  patience_.begin({});
  check_cuda(cudaSetDevice(device_), "choosing the GPU", rank());
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream", rank());
  check_cuda(cudaEventCreateWithFlags(&inputs_ready_, cudaEventDisableTiming), "making an event", rank());
  check_cuda(cudaEventCreateWithFlags(&complete_, cudaEventDisableTiming), "making an event", rank());
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&token_), sizeof *token_), "device memory for the barrier", rank());
  check_cuda(cudaMemset(token_, 0, sizeof *token_), "device memory for the barrier", rank());

  const auto key = fmt::format("collective/{}/id", options_.name);
  ncclUniqueId id{};
  if (rank() == 0) {
    check_nccl(ncclGetUniqueId(&id), nullptr, "making an id", rank());
    gang_.rendezvous().set(key, {id.internal, sizeof id.internal});
  } else {
    const auto text = gang_.rendezvous().get(key, options_.timeout);
    std::memcpy(id.internal, text.data(), std::min(text.size(), sizeof id.internal));
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  wait_enqueued(ncclCommInitRankConfig(&comm_, size(), id, rank(), &config));
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ != nullptr && !failure_) {
    const auto until = Clock::now() + kGoodbye;
    auto state = ncclCommFinalize(comm_);
    while (state == ncclInProgress && Clock::now() < until && !patience_.gang_is_broken()) {
      std::this_thread::sleep_for(kPause);
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) break;
    }
    if (state == ncclSuccess) {
      ncclCommDestroy(comm_);
      comm_ = nullptr;
    }
  }
  give_up();
  if (token_ != nullptr) cudaFree(token_);
  if (complete_ != nullptr) cudaEventDestroy(complete_);
  if (inputs_ready_ != nullptr) cudaEventDestroy(inputs_ready_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void NcclCommunicator::give_up() {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

void NcclCommunicator::check_leaving() {
  if (abort_state_.load(std::memory_order_acquire) == 2) patience_.throw_gone(abort_reason_);
  // Which ranks are missing, NCCL does not tell.
  if (!patience_.expired()) return;
  throw TimedOut(Failure{.kind = Failure::Kind::TimedOut,
                         .message = fmt::format("rank {} waited {} ms for other ranks in {} over NCCL", rank(),
                                                options_.timeout.count(), to_string(patience_.what()))});
}

void NcclCommunicator::wait_enqueued(ncclResult_t result) {
  const auto what = to_string(patience_.what());
  check_nccl(result, comm_, what, rank());
  poll_until(
      [&] {
        check_nccl(ncclCommGetAsyncError(comm_, &result), comm_, what, rank());
        check_nccl(result, comm_, what, rank());
        return result == ncclSuccess;
      },
      [this] { check_leaving(); });
}

void NcclCommunicator::wait_complete() {
  poll_until(
      [this] {
        const auto state = cudaEventQuery(complete_);
        if (state == cudaSuccess) return true;
        if (state != cudaErrorNotReady) check_cuda(state, to_string(patience_.what()), rank());
        auto failed = ncclSuccess;
        if (ncclCommGetAsyncError(comm_, &failed) == ncclSuccess)
          check_nccl(failed, comm_, to_string(patience_.what()), rank());
        return false;
      },
      [this] { check_leaving(); });
}

template <class Enqueue>
void NcclCommunicator::run(Announcement what, Enqueue enqueue) {
  if (failure_) std::rethrow_exception(failure_);
  what.sequence = calls_++;
  patience_.begin(what);
  try {
    check_leaving();
    check_cuda(cudaSetDevice(device_), "choosing the GPU", rank());
    check_cuda(cudaEventRecord(inputs_ready_, cudaStreamLegacy), "marking the inputs", rank());
    check_cuda(cudaStreamWaitEvent(stream_, inputs_ready_, 0), "waiting for the inputs", rank());
    wait_enqueued(enqueue());
    check_cuda(cudaEventRecord(complete_, stream_), "marking the end", rank());
    wait_complete();
  } catch (...) {
    failure_ = std::current_exception();
    give_up();
    throw;
  }
}

void NcclCommunicator::abort(std::string_view reason) {
  int none = 0;
  if (!abort_state_.compare_exchange_strong(none, 1)) return;
  abort_reason_ = fmt::format("rank {} ended the communicator: {}", rank(), reason);
  abort_state_.store(2, std::memory_order_release);
}

void NcclCommunicator::barrier() {
  run({.kind = CallKind::Barrier},
      [&] { return ncclAllReduce(token_, token_, 1, ncclInt32, ncclSum, comm_, stream_); });
}

void NcclCommunicator::do_all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) {
  run({.count = count, .kind = CallKind::AllReduce, .type = type, .op = op},
      [&] { return ncclAllReduce(data, data, count, nccl_type(type), nccl_op(op), comm_, stream_); });
}

void NcclCommunicator::do_broadcast(void* data, std::size_t count, DataType type, int root) {
  run({.count = count, .kind = CallKind::Broadcast, .type = type, .root = root},
      [&] { return ncclBroadcast(data, data, count, nccl_type(type), root, comm_, stream_); });
}

void NcclCommunicator::do_all_gather(const void* in, void* out, std::size_t count, DataType type) {
  run({.count = count, .kind = CallKind::AllGather, .type = type},
      [&] { return ncclAllGather(in, out, count, nccl_type(type), comm_, stream_); });
}

void NcclCommunicator::do_reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) {
  run({.count = count, .kind = CallKind::ReduceScatter, .type = type, .op = op},
      [&] { return ncclReduceScatter(in, out, count, nccl_type(type), nccl_op(op), comm_, stream_); });
}

std::unique_ptr<Communicator> make_nccl_communicator(GangContext& gang, NcclOptions options) {
  return std::make_unique<NcclCommunicator>(gang, std::move(options));
}

}  // namespace troupe::train
