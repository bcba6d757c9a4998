// The operators of the other device, and what LibTorch asks of a kind of device besides memory.
#include "support/other_device.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/HPUHooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

namespace troupe::testing {
namespace {

constexpr auto kOtherType = c10::DeviceType::HPU;
constexpr c10::DispatchKeySet kOtherKeys(c10::DispatchKey::HPU);
constexpr c10::DispatchKeySet kCpuKeys(c10::DispatchKey::CPU);

/// Of this name, by which LibTorch finds the class.
struct HPUHooks final : at::HPUHooksInterface {
  explicit HPUHooks(at::HPUHooksArgs) {}
  void init() const override {}
  bool hasHPU() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::Device getDeviceFromPtr(void*) const override { return other_device(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  c10::DeviceIndex deviceCount() const override { return 1; }
};
using at::HPUHooksRegistry, at::RegistererHPUHooksRegistry;
REGISTER_HPU_HOOKS(HPUHooks)

bool is_other(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kOtherType;
}

/// A tensor of `storage` and of the dispatch keys `keys` that is else as `like`.
at::Tensor tensor_in(c10::Storage storage, c10::DispatchKeySet keys, const at::Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, like.dtype());
  auto* const impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj() != made.is_conj()) made._set_conj(like.is_conj());
  if (like.is_neg() != made.is_neg()) made._set_neg(like.is_neg());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return made;
}

/// A tensor of the CPU with the memory of a tensor of the device. It has none of that tensor's
/// other dispatch keys, whose functions have been called when an operator comes here. If a kernel
/// wants more memory for it, it gets other memory, which has to be brought back.
at::Tensor cpu_alias(const at::Tensor& tensor) {
  const auto& storage = tensor.storage();
  auto* const memory = storage.unsafeGetStorageImpl()->mutable_data();
  TORCH_CHECK(tensor.numel() == 0 || memory != nullptr, "a tensor has no memory in an operator");
  return tensor_in(c10::make_intrusive<c10::StorageImpl>(
                       c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                       c10::DataPtr(memory, c10::kCPU), c10::GetCPUAllocator(), true),
                   kCpuKeys, tensor);
}

/// A copy of a CPU tensor, with the whole of its storage, on the device.
at::Tensor copy_there(const at::Tensor& tensor) {
  const auto& storage = tensor.storage();
  auto made = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), c10::GetAllocator(kOtherType), true);
  if (storage.nbytes() > 0) std::memcpy(made->mutable_data(), storage.data(), storage.nbytes());
  return tensor_in(std::move(made), kOtherKeys, tensor);
}

/// What one call of an operator has of the device, and the CPU's stand-ins for it.
class Aliases {
 public:
  explicit Aliases(const c10::FunctionSchema& schema) : schema_(schema) {}

  /// Replaces what the value has of the device.
  void put_into(c10::IValue& value, const c10::Argument& argument) {
    if (value.isTensor()) {
      const auto* const info = argument.alias_info();
      value = for_tensor(value.toTensor(), info == nullptr || !info->isWrite());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorList()) list.push_back(for_tensor(tensor));
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      value = for_indices(value);
    } else if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    }
  }

  /// Gives the device's tensors what the operator has made of the size and memory of stand-ins.
  void bring_back() {
    for (const auto& [tensor, alias] : pairs_) {
      if (alias.sizes() == tensor.sizes() && alias.strides() == tensor.strides()) continue;
      if (alias.storage().data() != tensor.storage().data()) {
        const auto bytes = alias.storage().nbytes();
        auto* const storage = tensor.storage().unsafeGetStorageImpl();
        at::native::resize_bytes_cpu(storage, bytes);  // with the storage's own allocator
        std::memcpy(storage->mutable_data(), alias.storage().data(), bytes);
      }
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides(),
                                                          alias.storage_offset());
    }
  }

  /// Replaces what the operator has returned by values of the device.
  void take_from(c10::IValue& value) const {
    if (value.isTensor()) {
      value = returned(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorList()) list.push_back(returned(tensor));
      value = std::move(list);
    }
  }

 private:
  at::Tensor for_tensor(const at::Tensor& tensor, bool may_be_scalar = true) {
    if (!is_other(tensor)) {
      TORCH_CHECK(!tensor.defined() || (may_be_scalar && tensor.dim() == 0), schema_.name(),
                  ": expected all tensors to be on one device, but one of them is on ",
                  tensor.device(), " and another on ", other_device());
      return tensor;
    }
    return pairs_.emplace_back(tensor, cpu_alias(tensor)).second;
  }

  /// Those of `index` and its like, which may be on the CPU.
  c10::List<std::optional<at::Tensor>> for_indices(const c10::IValue& indices) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& index : indices.toListRef()) {
      auto tensor = index.toOptional<at::Tensor>();
      list.push_back(tensor && is_other(*tensor) ? for_tensor(*tensor) : std::move(tensor));
    }
    return list;
  }

  at::Tensor returned(const at::Tensor& result) const {
    if (!result.defined() || is_other(result)) return result;
    for (const auto& [tensor, alias] : pairs_) {
      if (result.is_same(alias)) return tensor;
      if (result.is_alias_of(alias)) return tensor_in(tensor.storage(), tensor.key_set(), result);
    }
    return copy_there(result);
  }

  const c10::FunctionSchema& schema_;
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

void call_on_cpu(const c10::OperatorHandle& called, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView has_recorded;  // the graph, with the device's tensors
  const auto& schema = called.schema();
  Aliases aliases(schema);
  const auto begin = stack->size() - schema.arguments().size();
  for (auto i = begin; i < stack->size(); ++i)
    aliases.put_into((*stack)[i], schema.arguments()[i - begin]);
  called.redispatchBoxed(kCpuKeys, stack);
  aliases.bring_back();
  for (auto i = stack->size() - schema.returns().size(); i < stack->size(); ++i)
    aliases.take_from((*stack)[i]);
}

/// LibTorch asks a device that it has no kernels for to overload these two, with the arguments of
/// `convolution`, and with those of `convolution_backward` less `bias_sizes`.
void convolve(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  call_on_cpu(c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", ""), stack);
}

void convolve_backward(const c10::OperatorHandle& called, torch::jit::Stack* stack) {
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(called.schema().arguments().size());
  const auto channels = begin->toTensor().size(1);
  stack->insert(begin + 3, std::vector<std::int64_t>{channels});
  call_on_cpu(c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", ""),
              stack);
}

at::Tensor empty_there(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                       std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, c10::GetAllocator(kOtherType), kOtherKeys,
                                   c10::dtype_or_default(dtype), format);
}
at::Tensor empty_strided_there(at::IntArrayRef size, at::IntArrayRef stride,
                               std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                               std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(kOtherType), kOtherKeys,
                                           c10::dtype_or_default(dtype));
}

/// To the device, from it, or on it: `copy_` with the CPU's tensors as they are.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  const at::AutoDispatchBelowADInplaceOrView has_recorded;
  const auto source = is_other(from) ? cpu_alias(from) : from;
  (is_other(to) ? cpu_alias(to) : to).copy_(source);
  return to;
}

TORCH_LIBRARY_IMPL(_, HPU, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, HPU, library) {
  library.impl("empty.memory_format", &empty_there);
  library.impl("empty_strided", &empty_strided_there);
  library.impl("_copy_from", &copy_from);
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolve>());
  library.impl("convolution_backward_overrideable",
               torch::CppFunction::makeFromBoxedFunction<&convolve_backward>());
  // These use no values, or the storage itself.
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("resize_", &at::native::resize_);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
}

// A copy minds these bits of both tensors itself.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

c10::Device other_device() { return {kOtherType, 0}; }

}  // namespace troupe::testing
