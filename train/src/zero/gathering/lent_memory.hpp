#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace troupe::train {

/// Who brings the values of memory that is not always there.
class MemoryOwner {
 public:
  virtual ~MemoryOwner() = default;
  MemoryOwner(const MemoryOwner&) = delete;
  MemoryOwner& operator=(const MemoryOwner&) = delete;

  /// An operator of LibTorch is about to use a tensor of the memory, which is there when this
  /// returns. What it throws is the operator's error. On the thread of the operator.
  virtual void before_use() = 0;
  /// The operator has ended, well or not: once for each before_use() that has returned.
  virtual void after_use() noexcept = 0;

 protected:
  MemoryOwner() = default;
};

/// The memory of a tensor, which can be given back and taken again while other tensors look at it:
/// also those that LibTorch keeps for backward, which are views of the same storage.
///
/// Such a tensor carries LibTorch's dispatch key DeferredInit, and so do its views: each operator
/// that gets one of them comes to a function of ours first, which tells the owner and calls what
/// would have come then. The key exists for values that come later, and nothing in LibTorch uses
/// it. Results that are no views do not have it. Costs what bench/zero_bench.cpp prints for each
/// operator that uses such a tensor, and nothing for others.
///
/// What reaches for a tensor's memory without an operator finds none where it was given back:
/// `data_ptr<float>()` and accessors get LibTorch's error ("its data is not allocated yet"),
/// `data_ptr()` an address of nothing, and torch::save writes nothing. Operators that use no values
/// (`detach`, `zeros_like`) are told of too. All operators run on one stream of a GPU.
class LentMemory {
 public:
  /// Of a tensor of one dimension, to whose storage nothing else looks yet.
  explicit LentMemory(at::Tensor tensor);
  /// Tensors that look at the memory may live longer: an operator that uses one then is an error,
  /// if the memory is not there.
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// Nobody is told before the owner is set, nor once it is no more.
  void set_owner(std::weak_ptr<MemoryOwner> owner);
  /// The elements from `offset` on, with the size and strides of `like`, as a tensor of whose use
  /// the owner is told.
  at::Tensor view(std::int64_t offset, const at::Tensor& like) const;

  bool is_there() const { return is_there_; }
  /// Takes memory aside, with values of any kind, that no tensor looks at before take(). -> where
  /// it begins. Throws what the allocator of the device throws.
  void* prepare();
  /// What prepare() has returned becomes the memory.
  void take();
  void drop_prepared() { prepared_.clear(); }
  /// Operators on this device's current stream may still use it.
  void give_back();

 private:
  void put(c10::DataPtr memory, std::size_t bytes);

  const at::Tensor tensor_;
  const std::size_t bytes_;
  c10::DataPtr prepared_;
  std::weak_ptr<MemoryOwner> owner_;
  bool is_there_ = true;
};

/// While it lives, no owner is told of what this thread's operators use: for those that use no
/// values.
class NobodyTold {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::DispatchKey::DeferredInit};
};

}  // namespace troupe::train
