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

/// What the ranks of a gang do together. Every rank makes the same calls in the same order; a call
/// returns when this rank's result is in its buffer. Buffers are main memory for `host` and device
/// memory for `nccl`.
///
/// All ranks get bit-identical results: the order of a reduction depends on the ranks, never on who
/// came first. float16 and bfloat16 are summed in float32 and rounded once per node and hop.
///
/// Threads: one call at a time, from any thread; only abort() may be called beside one. A call that
/// comes while another thread is inside throws std::logic_error that names both, and leaves the
/// communicator as it was.
///
/// Errors, all of which end the communicator (every later call throws the same again):
/// * GangBroken: a rank died, called abort() or closed its communicator (`host`), or the gang was
///   ended: who and why.
/// * TimedOut: the deadline of a call passed; the message names the call and the ranks that had not
///   come.
/// * std::invalid_argument: ranks made different calls at the same place (names both; `nccl` cannot
///   tell, and waits), or arguments that cannot be (those are refused before anything is sent, and
///   leave the communicator as it was).
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
  /// In place: afterwards everybody has root's data.
  void broadcast(void* data, std::size_t count, DataType type, int root);
  /// `in`: count elements; `out`: size() * count, in the order of ranks. They must not overlap.
  void all_gather(const void* in, void* out, std::size_t count, DataType type);
  /// `in`: size() * count elements; `out`: count, the rank's own part of the reduction. They must
  /// not overlap.
  void reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op);
  /// `in`: size() * count elements, part r of which goes to rank r; `out`: as many, part r of which
  /// came from rank r. They must not overlap.
  void all_to_all(const void* in, void* out, std::size_t count, DataType type);
  /// Returns once every rank has called it.
  virtual void barrier() = 0;

  /// To one other rank, which calls recv for as many of the same type; nobody else takes part.
  /// Returns when that rank has come and `data` may be changed: of two ranks that exchange
  /// something, one receives first. The first message between two ranks makes their connection.
  void send(const void* data, std::size_t count, DataType type, int to);
  void recv(void* data, std::size_t count, DataType type, int from);

  static constexpr int kNoColor = -1;
  /// Ranks that give the same `color` (>= 0) form a communicator of their own, numbered by `key`,
  /// then by rank here; it uses the same gang and options, has errors of its own, and names ranks
  /// by its own numbers. nullptr for kNoColor. A collective over all ranks of this one, whose end
  /// does not end the new one.
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

  /// A zeroed buffer of at least `bytes` that all_reduce works on in place, without a copy, where
  /// that is possible (`host` with all ranks on one node). A collective: every rank asks for the
  /// same size. Freed with the last share of it. nullptr where it would bring nothing: then any
  /// buffer is as good.
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
  virtual void do_reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                 ReduceOp op) = 0;
  virtual void do_all_to_all(const void* in, void* out, std::size_t count, DataType type) = 0;
  virtual void do_send(const void* data, std::size_t count, DataType type, int to) = 0;
  virtual void do_recv(void* data, std::size_t count, DataType type, int from) = 0;
  virtual std::unique_ptr<Communicator> do_split(int color, int key) = 0;
};

struct HostOptions {
  std::string name = "host";  ///< each communicator of a gang needs a name of its own
  /// How long one call, or the start, may wait for other ranks. As PyTorch's process groups: 30
  /// minutes, since a rank may be writing a checkpoint or reading data meanwhile. A dead rank is
  /// noticed within a fraction of a second anyway.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// How long one call, or the start, waits before one of the ranks that wait says so in its log,
  /// once: for which ranks. Another line says when the call went on. 0: never.
  std::chrono::milliseconds warn_after = std::chrono::seconds(30);
  std::size_t chunk_bytes =
      /// Of one step through shared memory; 4 KiB .. 64 MiB. Memory: 2 (ranks + 1) chunks a node.
      256 << 10;
  /// Of this node, where peers on other nodes reach it. Empty: the one that its worker processes
  /// listen on (GangContext::host). "0.0.0.0": all of them, each of which the peers try.
  std::string address = {};
};

/// Over main memory: shared memory within a node, a ring of TCP connections between the nodes'
/// first ranks. A collective: every rank calls it with the same options. Leaves no file behind;
/// needs /proc and one user per node. `gang` must outlive the communicator. Throws as the calls do.
std::unique_ptr<Communicator> make_host_communicator(GangContext& gang, HostOptions options = {});

struct NcclOptions {
  std::string name = "nccl";
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  std::chrono::milliseconds warn_after = std::chrono::seconds(30);  ///< as HostOptions::warn_after
  int device = -1;  ///< index among the GPUs that this process sees; -1: the local rank
};

/// Over NCCL, for buffers in device memory. Inputs must have been written on the default stream or
/// be complete; results are complete when a call returns. NCCL's communicator is non-blocking, so
/// that a dead rank or the deadline ends a call. Throws troupe::Impossible if no CUDA device is
/// visible to this process.
std::unique_ptr<Communicator> make_nccl_communicator(GangContext& gang, NcclOptions options = {});

}  // namespace troupe::train
