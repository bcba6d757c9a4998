#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <troupe/gang_context.hpp>

namespace troupe::train {

enum class DataType : std::uint8_t {
  Int8,
  UInt8,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64
};
enum class ReduceOp : std::uint8_t { Sum, Average, Min, Max, Product };

std::size_t size_of(DataType type);  ///< bytes of one element
const char* name_of(DataType type);  ///< "float32"
const char* name_of(ReduceOp op);    ///< "average"
bool is_floating(DataType type);

/// The DataType of a C++ arithmetic type that has one.
template <class T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, std::int8_t>)
    return DataType::Int8;
  else if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>)
    return DataType::UInt8;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DataType::Int32;
  else if constexpr (std::is_same_v<T, float>)
    return DataType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DataType::Float64;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8)
    return DataType::Int64;
  else
    static_assert(!sizeof(T), "no DataType for this C++ type");
}

/// Collective operations of the ranks of a gang. Every rank makes the same calls in the same order;
/// a call returns when this rank's result is in its buffer. Buffers are main memory for `host` and
/// device memory for `nccl`.
///
/// All ranks get bit-identical results: the order of a reduction depends on the ranks' numbers,
/// never on which came first. float16 and bfloat16 are summed in float32 and rounded once per node
/// and hop. With `host`, the average of finite numbers is finite, also where their sum is not.
///
/// Threads: one call at a time, from any thread; only abort() may run at the same time. A call
/// while another thread is inside throws std::logic_error, which names both calls, and leaves the
/// communicator unchanged.
///
/// Errors, all of which end the communicator (every later call throws the same again):
/// * GangBroken: a rank died, called abort() or closed its communicator (with `nccl` the others
///   notice the latter up to 10 s later), a call of a rank (its actor's constructor or method)
///   failed while it had the communicator, or the gang was ended. The message names the rank and
///   the reason. An exception that a method catches itself ends nothing.
/// * TimedOut: the deadline of a call passed; the message names the call and the missing ranks.
/// * std::invalid_argument: ranks made different calls at the same place (the message names both;
///   `nccl` cannot detect this, and waits), or arguments are invalid (these are refused before
///   anything is sent, and leave the communicator unchanged).
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;  ///< "host" or "nccl"

  /// In place. Average of an integer type is refused.
  void all_reduce(void* data, std::size_t count, DataType type, ReduceOp op);
  /// In place: afterwards every rank has root's data.
  void broadcast(void* data, std::size_t count, DataType type, int root);
  /// `in`: count elements; `out`: size() * count, in the order of ranks. They must not overlap.
  void all_gather(const void* in, void* out, std::size_t count, DataType type);
  /// The same with parts of different sizes: rank r has counts[r] elements. `in`: this rank's;
  /// `out`: those of all, in the order of ranks. Every rank passes the same counts, one for each
  /// rank.
  void all_gather(const void* in, void* out, std::span<const std::size_t> counts, DataType type);
  /// `in`: size() * count elements; `out`: count, the rank's own part of the reduction. They must
  /// not overlap.
  void reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op);
  /// `in`: size() * count elements, part r of which goes to rank r; `out`: as many, part r of which
  /// came from rank r. They must not overlap.
  void all_to_all(const void* in, void* out, std::size_t count, DataType type);
  // reduce, gather and scatter go to one rank or come from it. `out` of reduce and gather and `in`
  // of scatter are root's alone, and not looked at elsewhere. Other ranks may return before root
  // has its result.

  /// Root's `out` is the reduction of all ranks' `in`, count elements each; `in` and `out` may be
  /// the same.
  void reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, int root);
  /// `in`: count elements; root's `out`: size() * count, in the order of ranks. They must not
  /// overlap.
  void gather(const void* in, void* out, std::size_t count, DataType type, int root);
  /// Root's `in`: size() * count elements, part r of which goes to rank r; `out`: count. They must
  /// not overlap.
  void scatter(const void* in, void* out, std::size_t count, DataType type, int root);
  /// Returns once every rank has called it.
  virtual void barrier() = 0;

  /// Sends to one other rank, which calls recv with the same count and type; no other rank takes
  /// part. Returns when that rank has called recv and `data` may be changed, so when two ranks
  /// exchange something, one must receive first. The first message between two ranks makes their
  /// connection.
  void send(const void* data, std::size_t count, DataType type, int to);
  void recv(void* data, std::size_t count, DataType type, int from);

  static constexpr int kNoColor = -1;
  /// Ranks that pass the same `color` (>= 0) form a new communicator, numbered by `key`, then by
  /// rank here; kNoColor gives nullptr. The new communicator uses the same gang and options, has
  /// its own errors, and names ranks by its own numbers. split is a collective over all ranks of
  /// this communicator, whose end does not end the new one.
  std::unique_ptr<Communicator> split(int color, int key);

  template <class T>
  void all_reduce(std::span<T> data, ReduceOp op = ReduceOp::Sum) {
    all_reduce(data.data(), data.size(), data_type_of<T>(), op);
  }
  template <class T>
  void broadcast(std::span<T> data, int root) {
    broadcast(data.data(), data.size(), data_type_of<T>(), root);
  }
  template <class T>
  void send(std::span<T> data, int to) {
    send(data.data(), data.size(), data_type_of<std::remove_const_t<T>>(), to);
  }
  template <class T>
  void recv(std::span<T> data, int from) {
    recv(data.data(), data.size(), data_type_of<T>(), from);
  }

  /// A zeroed buffer of at least `bytes` on which all_reduce works in place, without a copy, if
  /// that is possible (`host` with all ranks on one node). A collective: every rank asks for the
  /// same size. Freed with the last share of it. nullptr if such a buffer would have no advantage.
  virtual std::shared_ptr<void> allocate(std::size_t bytes);

  /// Ends the communicator on every rank that can be reached: their calls throw GangBroken with
  /// `reason`. Any thread; does not block.
  virtual void abort(std::string_view reason) = 0;

 protected:
  Communicator() = default;

 private:
  virtual void do_all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) = 0;
  virtual void do_broadcast(void* data, std::size_t count, DataType type, int root) = 0;
  virtual void do_all_gather(const void* in, void* out, std::size_t count, DataType type) = 0;
  virtual void do_all_gather_parts(const void* in, void* out, std::span<const std::size_t> counts,
                                   DataType type) = 0;
  virtual void do_reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                 ReduceOp op) = 0;
  virtual void do_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                         int root) = 0;
  virtual void do_gather(const void* in, void* out, std::size_t count, DataType type, int root) = 0;
  virtual void do_scatter(const void* in, void* out, std::size_t count, DataType type,
                          int root) = 0;
  virtual void do_all_to_all(const void* in, void* out, std::size_t count, DataType type) = 0;
  virtual void do_send(const void* data, std::size_t count, DataType type, int to) = 0;
  virtual void do_recv(void* data, std::size_t count, DataType type, int from) = 0;
  virtual std::unique_ptr<Communicator> do_split(int color, int key) = 0;
};

struct HostOptions {
  std::string name = "host";  ///< each communicator of a gang needs a name of its own
  /// How long one call, or the start, may wait for other ranks. 30 minutes, as for PyTorch's
  /// process groups, because a rank may be writing a checkpoint or reading data. A dead rank is
  /// noticed within a fraction of a second in any case.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// How long one call, or the start, waits before one of the waiting ranks names the missing ranks
  /// in its log, once. Another line says when the call continued. 0: never.
  std::chrono::milliseconds warn_after = std::chrono::seconds(30);
  std::size_t chunk_bytes =
      /// One step through shared memory; 4 KiB .. 64 MiB. Memory: 2 (ranks + 1) chunks per node.
      256 << 10;
  /// The address of this node at which ranks on other nodes reach it. Empty: the address on which
  /// its worker processes listen (GangContext::host). "0.0.0.0": all addresses, each of which the
  /// other ranks try.
  std::string address = {};
};

/// A communicator over main memory: shared memory within a node, a ring of TCP connections between
/// the nodes' first ranks. A collective: every rank calls it with the same options. Leaves no file
/// behind; needs /proc and one user per node. `gang` must outlive the communicator. Throws what the
/// communicator's calls throw.
std::unique_ptr<Communicator> make_host_communicator(GangContext& gang, HostOptions options = {});

struct NcclOptions {
  std::string name = "nccl";
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  std::chrono::milliseconds warn_after = std::chrono::seconds(30);  ///< as HostOptions::warn_after
  int device = -1;  ///< index among the GPUs that this process sees; -1: the local rank
};

/// A communicator over NCCL, for buffers in device memory. Inputs must have been written on the
/// default stream or be complete; results are complete when a call returns. NCCL's communicator is
/// non-blocking, so that a dead rank or the deadline ends a call. Throws troupe::Impossible if no
/// CUDA device is visible to this process.
std::unique_ptr<Communicator> make_nccl_communicator(GangContext& gang, NcclOptions options = {});

}  // namespace troupe::train
