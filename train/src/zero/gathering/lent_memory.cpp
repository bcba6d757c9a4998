#include "zero/gathering/lent_memory.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>
#include <fmt/format.h>
#include <torch/library.h>

namespace troupe::train {
namespace {

constexpr auto kKey = c10::DispatchKey::DeferredInit;

/// Stands behind a storage's pointer, where LibTorch has the means to free the memory.
struct Label {
  std::weak_ptr<MemoryOwner> owner;
  c10::DataPtr memory;
  bool is_there;
};

void drop(void* label) { delete static_cast<Label*>(label); }

/// nullptr: a tensor of other memory.
Label* label_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const auto& pointer = tensor.storage().data_ptr();
  return pointer.get_deleter() == &drop ? static_cast<Label*>(pointer.get_context()) : nullptr;
}

/// The memory that one operator uses, while it runs.
class Uses {
 public:
  Uses() = default;
  ~Uses() {
    for (const auto& owner : owners_) owner->after_use();
  }
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;

  void add(const c10::IValue& argument) {
    if (argument.isTensor()) {
      add(argument.toTensor());
    } else if (argument.isTensorList()) {
      for (const at::Tensor& tensor : argument.toTensorList()) add(tensor);
    } else if (argument.isOptionalTensorList()) {
      for (const c10::IValue& element : argument.toListRef()) add(element);
    }
  }

 private:
  void add(const at::Tensor& tensor) {
    const auto* label = label_of(tensor);
    if (label == nullptr) return;
    if (auto owner = label->owner.lock()) {
      owner->before_use();  // the label may be another then
      owners_.push_back(std::move(owner));
    } else if (!label->is_there) {
      throw std::logic_error(
          "a parameter is used whose values are cut among the ranks by ContextOptions::zero.stage "
          "3, and the Context that brings them has ended, or its model was prepared again: use the "
          "model while its Context lives, or load it from a checkpoint");
    }
  }

  c10::SmallVector<std::shared_ptr<MemoryOwner>, 4> owners_;
};

/// Of main memory. Not of the heap, which would keep it from the system, as it is freed and taken
/// among what lives longer.
struct Pages {
  void* at;
  std::size_t bytes;
  static void unmap(void* pages) {
    const std::unique_ptr<Pages> own(static_cast<Pages*>(pages));
    ::munmap(own->at, own->bytes);
  }
};

c10::DataPtr map_pages(std::size_t bytes) {
  auto pages = std::make_unique<Pages>(Pages{nullptr, std::max<std::size_t>(bytes, 1)});
  pages->at =
      ::mmap(nullptr, pages->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages->at == MAP_FAILED) {
    throw std::runtime_error(fmt::format("no {} bytes of memory for parameters that are used: {}",
                                         bytes, std::strerror(errno)));
  }
  ::madvise(pages->at, pages->bytes, MADV_HUGEPAGE);
  auto* const at = pages->at;
  return {at, pages.release(), &Pages::unmap, c10::kCPU};
}

void tell_and_call(const c10::OperatorHandle& called, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  Uses uses;
  for (const auto& argument : torch::jit::last(*stack, called.schema().arguments().size()))
    uses.add(argument);
  called.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
}

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&tell_and_call>());
}

}  // namespace

LentMemory::LentMemory(at::Tensor tensor)
    : tensor_(std::move(tensor)), bytes_(tensor_.storage().nbytes()) {
  auto* storage = tensor_.storage().unsafeGetStorageImpl();
  put(storage->set_data_ptr(c10::DataPtr(nullptr, storage->device())), bytes_);
}

LentMemory::~LentMemory() { set_owner({}); }

void LentMemory::set_owner(std::weak_ptr<MemoryOwner> owner) {
  owner_ = std::move(owner);
  if (auto* label = label_of(tensor_)) label->owner = owner_;
}

at::Tensor LentMemory::view(std::int64_t offset, const at::Tensor& like) const {
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(tensor_.storage()), tensor_.key_set().add(kKey),
      tensor_.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  made.unsafeGetTensorImpl()->set_storage_offset(offset);
  return made;
}

void* LentMemory::prepare() {
  const c10::OptionalDeviceGuard guard(tensor_.device());  // which no operator has made current yet
  prepared_ = tensor_.is_cpu()
                  ? map_pages(bytes_)
                  : tensor_.storage().unsafeGetStorageImpl()->allocator()->allocate(bytes_);
  return prepared_.get();
}

void LentMemory::take() {
  is_there_ = true;
  put(std::move(prepared_), bytes_);
  prepared_.clear();
}

void LentMemory::give_back() {
  if (!std::exchange(is_there_, false)) return;
  put(c10::DataPtr(nullptr, tensor_.device()), 0);
}

void LentMemory::put(c10::DataPtr memory, std::size_t bytes) {
  auto* storage = tensor_.storage().unsafeGetStorageImpl();
  auto* data = memory.get();
  const auto device = memory.device();
  storage->set_data_ptr_noswap(
      c10::DataPtr(data, new Label{owner_, std::move(memory), is_there_}, &drop, device));
  storage->set_nbytes(bytes);
}

}  // namespace troupe::train
