#include <cstring>
#include <optional>
#include <vector>

#include "support/nccl_double/communicator.hpp"
#include "support/nccl_double/memory.hpp"
#include "support/nccl_double/reduce.hpp"

namespace nccl_double {
namespace {

enum class Call : std::uint64_t { Message, Broadcast, AllGather, Reduce, AllReduce, ReduceScatter };

/// What a thread has called since ncclGroupStart.
struct Group {
  int depth = 0;
  ncclResult_t failed = ncclSuccess;
  std::shared_ptr<Comm> comm;
  cudaStream_t stream = nullptr;
  std::vector<Operation> operations;
};
thread_local Group group;

ncclResult_t launch(Group what) {
  if (what.failed != ncclSuccess) return what.failed;
  if (what.operations.empty()) return ncclSuccess;
  return what.comm->begin_operations(std::move(what.operations), what.stream);
}

ncclResult_t add(const std::shared_ptr<Comm>& comm, Operation operation, cudaStream_t stream) {
  if (group.depth == 0) {
    Group alone;
    alone.comm = comm;
    alone.stream = stream;
    alone.operations.push_back(std::move(operation));
    return launch(std::move(alone));
  }
  if (!group.operations.empty() && (group.comm != comm || group.stream != stream))
    return group.failed = comm->refuse(ncclInvalidUsage, "a group is of one communicator");
  group.comm = comm;
  group.stream = stream;
  group.operations.push_back(std::move(operation));
  return ncclSuccess;
}

/// What a call has in common with the same call of the other ranks, and how it builds its
/// transfers.
class Builder {
 public:
  Builder(Call call, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm)
      : comm_(comm->it),
        size_(size_of(type)),
        tag_(static_cast<std::uint64_t>(call) << 48 | static_cast<std::uint64_t>(root) << 16 |
             static_cast<std::uint64_t>(type) << 8 | static_cast<std::uint64_t>(op)) {}

  int rank() const { return comm_->rank(); }
  int ranks() const { return comm_->size(); }
  std::size_t bytes(std::size_t count) const { return count * size_; }

  /// Memory that the call reads or writes: it must be the device's.
  const std::byte* in(const void* data, std::size_t count) {
    check(data, count);
    return static_cast<const std::byte*>(data);
  }
  std::byte* out(void* data, std::size_t count) {
    check(data, count);
    return static_cast<std::byte*>(data);
  }
  void send(int to, const std::byte* data, std::size_t count) {
    operation_.transfers.push_back({to, true, const_cast<std::byte*>(data), bytes(count), tag_});
  }
  void receive(int from, std::byte* data, std::size_t count) {
    operation_.transfers.push_back({from, false, data, bytes(count), tag_});
  }
  /// `data` of this rank, and what all others send of theirs, by rank.
  std::vector<const void*> receive_all(const std::byte* data, std::size_t count) {
    auto scratch =
        std::make_shared<std::vector<std::byte>>(bytes(count) * static_cast<std::size_t>(ranks()));
    std::vector<const void*> all;
    for (int peer = 0; peer < ranks(); ++peer) {
      auto* part = scratch->data() + static_cast<std::size_t>(peer) * bytes(count);
      all.push_back(peer == rank() ? data : part);
      if (peer != rank()) receive(peer, part, count);
    }
    operation_.scratch = std::move(scratch);
    return all;
  }
  void finish_by(std::function<void()> finish) { operation_.finish = std::move(finish); }
  ncclResult_t add_to(cudaStream_t stream) {
    if (size_ == 0) problem_ = "a type that the double does not know";
    if (!problem_) return add(comm_, std::move(operation_), stream);
    const auto result = comm_->refuse(ncclInvalidArgument, problem_);
    if (group.depth > 0) group.failed = result;
    return result;
  }

 private:
  void check(const void* data, std::size_t count) {
    if (count > 0 && !behaviour().takes_any_memory && !is_device_memory(data, bytes(count)))
      problem_ = "what is not memory of the device";
  }

  const std::shared_ptr<Comm> comm_;
  const std::size_t size_;
  const std::uint64_t tag_;
  const char* problem_ = nullptr;
  Operation operation_;
};

}  // namespace
}  // namespace nccl_double

using namespace nccl_double;

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  return launch(std::exchange(group, Group{}));
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  Builder call(Call::Message, type, ncclSum, 0, comm);
  call.send(peer, call.in(data, count), count);
  return call.add_to(stream);
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Builder call(Call::Message, type, ncclSum, 0, comm);
  call.receive(peer, call.out(data, count), count);
  return call.add_to(stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  Builder call(Call::Broadcast, type, ncclSum, root, comm);
  auto* out = call.out(to, count);
  if (call.rank() != root) {
    call.receive(root, out, count);
    return call.add_to(stream);
  }
  const auto* in = call.in(from, count);
  for (int peer = 0; peer < call.ranks(); ++peer) {
    if (peer != root) call.send(peer, in, count);
  }
  if (count > 0) call.finish_by([=, bytes = call.bytes(count)] { std::memmove(out, in, bytes); });
  return call.add_to(stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  Builder call(Call::AllGather, type, ncclSum, 0, comm);
  const auto* in = call.in(from, count);
  auto* out = call.out(to, count * static_cast<std::size_t>(call.ranks()));
  for (int peer = 0; peer < call.ranks(); ++peer) {
    call.send(peer, in, count);
    call.receive(peer, out + static_cast<std::size_t>(peer) * call.bytes(count), count);
  }
  return call.add_to(stream);
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  Builder call(Call::Reduce, type, op, root, comm);
  const auto* in = call.in(from, count);
  if (call.rank() != root) {
    call.send(root, in, count);
    return call.add_to(stream);
  }
  auto* out = call.out(to, count);
  call.finish_by([=, all = call.receive_all(in, count)] { reduce(all, out, count, type, op); });
  return call.add_to(stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Builder call(Call::AllReduce, type, op, 0, comm);
  const auto* in = call.in(from, count);
  auto* out = call.out(to, count);
  for (int peer = 0; peer < call.ranks(); ++peer) {
    if (peer != call.rank()) call.send(peer, in, count);
  }
  call.finish_by([=, all = call.receive_all(in, count)] { reduce(all, out, count, type, op); });
  return call.add_to(stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Builder call(Call::ReduceScatter, type, op, 0, comm);
  const auto* in = call.in(from, count * static_cast<std::size_t>(call.ranks()));
  auto* out = call.out(to, count);
  const auto part = [&](int peer) {
    return in + static_cast<std::size_t>(peer) * call.bytes(count);
  };
  for (int peer = 0; peer < call.ranks(); ++peer) {
    if (peer != call.rank()) call.send(peer, part(peer), count);
  }
  call.finish_by(
      [=, all = call.receive_all(part(call.rank()), count)] { reduce(all, out, count, type, op); });
  return call.add_to(stream);
}
