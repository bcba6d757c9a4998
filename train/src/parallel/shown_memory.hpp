#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::train {

/// The tensor has the other's memory, type, size and device from now on. As Tensor::set_data, which
/// also takes the hooks off a parameter that is given another type.
inline void show(const at::Tensor& tensor, const at::Tensor& memory) {
  tensor.unsafeGetTensorImpl()->shallow_copy_from(memory.getIntrusivePtr());
}

/// Tensors show other memory while this lives, and afterwards their own again. The tensor that was
/// shown last is the first to have its own, so that a tensor may be shown twice.
///
/// Used by one thread.
class ShownMemory {
 public:
  /// A tensor, and another one that has the memory, type, size and device that it had before.
  using Original = std::pair<at::Tensor, at::Tensor>;

  ShownMemory() = default;
  ~ShownMemory() {
    for (auto each = originals_.rbegin(); each != originals_.rend(); ++each)
      train::show(each->first, each->second);
  }
  ShownMemory(const ShownMemory&) = delete;
  ShownMemory& operator=(const ShownMemory&) = delete;

  /// Calls Tensor::detach(), under the caller's guards.
  void show(const at::Tensor& tensor, const at::Tensor& memory) {
    originals_.emplace_back(tensor, tensor.detach());
    train::show(tensor, memory);
  }
  /// The tensors keep what they show. -> what they were before.
  std::vector<Original> release() { return std::exchange(originals_, {}); }

 private:
  std::vector<Original> originals_;
};

}  // namespace troupe::train
