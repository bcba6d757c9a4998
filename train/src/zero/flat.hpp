#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/train/communicator.hpp>

#include "parallel/buckets.hpp"
#include "zero/gathering/lent_memory.hpp"
#include "zero/partition.hpp"

namespace troupe::train {

class GradientShard;
class InitialMasters;

/// Parameters of one type and device, whose values lie in one buffer, so that one all-gather brings
/// what the other ranks have updated. Lives in one rank's process; not thread-safe.
///
/// A rank that holds the part alone (stage 3) has its part in memory of its own, and the buffer
/// only while the values are used.
///
///   what happens    where the rank holds the whole  where it holds its part
///   begin_update    nothing                         gives the buffer back
///   end_update      gathers, as all ranks do        nothing: gather() brings the new values
///   gather          takes the others' parts         takes the buffer, and all parts: at once, or
///                                                   in two halves, begin_gather and end_gather
///   release         nothing                         keeps its part as it is, gives the buffer back
///
/// With master weights the pieces are those of a copy of this rank's part, in float32 or in main
/// memory, which begin_update brings up to what was written to the parameters, and end_update
/// copies into the part. A part that the rank holds alone may be in main memory too: the buffer is
/// on the device.
///
/// 1. Between updates all ranks have the same values, of which a rank holds its part at least.
/// 2. A buffer that somebody holds is not given back.
/// 3. Between updates a parameter is its master weight rounded, but where it was written to.
class Flat {
 public:
  enum class Holds { Whole, Part, PartInMainMemory };
  /// Moves the parameters' values into the buffer, which is on `device`; nullopt: where they are.
  /// The parameters stay the same tensors. Throws std::invalid_argument for a type that cannot be
  /// sent.
  Flat(std::vector<NamedTensor> parameters, int rank, int ranks, Holds holds = Holds::Whole,
       std::optional<c10::Device> device = {});

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const Partition& partition() const { return partition_; }
  /// Whose part is this one's.
  int rank() const { return rank_; }
  /// What this rank updates: elements of parameters, as tensors of one dimension.
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<at::Tensor>& piece_tensors() const { return piece_tensors_; }
  /// Of the pieces' elements.
  at::TensorOptions options() const {
    return masters_.defined() ? masters_.options() : own_.options();
  }

  /// How master weights differ from the parameters.
  struct Masters {
    bool in_float32 = false;  ///< where those are of a smaller type
    bool in_main_memory = false;
  };
  /// The pieces are such copies from now on, where that differs from the part, and begin with what
  /// `value_of` has for a parameter, or the parameter itself where that is undefined. Those of an
  /// earlier call stay while somebody has what it returned. -> to be kept as long as they are used;
  /// nullptr: the pieces are the part itself
  std::shared_ptr<void> keep_masters(Masters masters,
                                     const std::function<at::Tensor(const at::Tensor&)>& value_of);

  /// What a checkpoint has of a piece: its master weights, as far as nobody has written to the
  /// parameter since, and else the values, one behind the other. `initial`: float32 is wanted also
  /// where this has no master weights, with these values; nullptr: the parameter's type. No
  /// operator uses the parameter.
  at::Tensor saved_values(std::size_t piece, const InitialMasters* initial) const;
  /// Of the order in which the buffer has the parameter's elements; empty: row by row.
  std::vector<std::int64_t> strides_of(std::size_t parameter) const;

  bool holds_part() const { return memory_ != nullptr; }
  /// Whether the values of all ranks are here.
  bool is_whole() const { return !memory_ || memory_->is_there(); }
  /// Of the buffer, where the rank holds its part.
  void set_owner(std::weak_ptr<MemoryOwner> owner) { memory_->set_owner(std::move(owner)); }
  /// A collective, over the memory of the parameters' device. Values that are here already stay,
  /// and are sent as the program has written them.
  void gather(Communicator& communicator);
  /// The arguments of Communicator::all_gather.
  struct AllGather {
    const void* in;
    void* out;
    std::size_t count;
    DataType type;
  };
  /// As gather(), where the rank holds its part and the buffer is not here, but the caller makes
  /// the collective: takes memory that is to be the buffer, and what is sent, until end_gather().
  /// Nobody writes to the part meanwhile. Throws what the allocator of the device throws, and then
  /// has taken nothing.
  AllGather begin_gather();
  /// The collective has ended, so that what is sent is no more needed.
  void drop_sent() { sent_.reset(); }
  /// The buffer is here, where `has_come` says that the collective has brought it.
  void end_gather(bool has_come);
  /// Of what was written to parameters outside of an update the rank keeps what is in its part.
  void release();
  /// While there is a holder, the buffer stays, and begin_update() is an error.
  void add_holders(int holders) { holders_ += holders; }
  /// While it is set, writes are not counted.
  void set_writes_are_free(bool free);
  /// How often operators have written to parameters since they were cut, but for updates.
  std::int64_t writes() const;
  /// Gives the parameters, whose values are here, memory of their own, in main memory. For nothing
  /// else afterwards.
  void dissolve();

  /// A parameter whose values the program has put elsewhere since, as loading a module does, is
  /// moved into the buffer again, for which that is gathered. Throws std::logic_error, naming the
  /// parameter, for one of another size, type or device.
  void move_back();
  /// Around what writes to the pieces. Throws std::logic_error where the buffer is held.
  void begin_update();
  void end_update(Communicator& communicator);
  /// So many have ended.
  std::int64_t updates() const { return updates_; }

  /// Gives the pieces the gradients of their elements, in their type and memory. `averages`: of the
  /// same parameters, in the same order; nullptr: the parameters have whole gradients. `copies`:
  /// each has memory of its own. Throws std::invalid_argument for a gradient that is sparse.
  void lend_gradients(const GradientShard* averages, bool copies);
  /// Throws what lend_gradients() would.
  void check_gradients(const GradientShard* averages) const;
  void drop_gradients();

  /// The elements of a tensor that is as large as the parameter, in the order in which the buffer
  /// has those of the parameter, on the tensor's own device.
  at::Tensor in_order(std::size_t parameter, const at::Tensor& tensor) const;

 private:
  static void gather(Communicator& communicator, const at::Tensor& own, const at::Tensor& into);
  at::Tensor own_in_values() const;
  std::int64_t versions() const;
  void keep_own();
  void move_into_place(std::size_t parameter);
  void take_values();
  void cut_into_pieces(const at::Tensor& part);
  at::Tensor gradient_of(std::size_t piece, const GradientShard* averages) const;
  bool is_in_place(std::size_t parameter) const;

  const std::vector<NamedTensor> parameters_;
  const Partition partition_;
  const std::vector<Piece> pieces_;
  const int rank_;
  at::Tensor values_;                   // of all ranks
  std::unique_ptr<LentMemory> memory_;  // of values_, where the rank holds its part
  at::Tensor own_;                      // its part
  at::Tensor sent_;                     // that part on the device, between the halves of a gather
  at::Tensor masters_;                  // a copy of that part; undefined without master weights
  std::weak_ptr<void> masters_used_;
  std::vector<at::Tensor> places_;
  std::vector<at::Tensor> piece_tensors_;
  int holders_ = 0;
  int free_ = 0;                      // guards under which writes are not counted
  std::int64_t versions_before_ = 0;  // that are no writes
  std::int64_t counted_ = 0;          // writes until the first of those guards
  std::int64_t versions_gathered_ =
      -1;  // when the buffer came; -1: it may have been written to since
  bool dissolved_ = false;
  std::int64_t updates_ = 0;
};

}  // namespace troupe::train
