#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <ATen/core/Tensor.h>

#include <troupe/detail/names.hpp>
#include <troupe/detail/sendable.hpp>
#include <troupe/train/model_handle.hpp>

/// Models as values: what a run returns, what tasks and actors take and return.
///
/// A model travels as it stands, if its class can be made without arguments: a module holder
/// (TORCH_MODULE) or a std::shared_ptr of the class. The receiver makes one, and reads into it the
/// parameters and buffers that were sent, and whether the model is in training mode. It arrives in
/// main memory, with the types and the `requires_grad` that the class gives its parameters; other
/// members of the class do not travel. Of a model whose class needs arguments, or whose arguments
/// differ from the defaults, send Weights.
namespace troupe::train {

/// The parameters and buffers of a model by name, in main memory. A tensor that the model has under
/// several names is there once, under the first of them.
struct Weights {
  std::map<std::string, at::Tensor> tensors = {};
};

/// A copy. Any thread; nothing else uses the model meanwhile. In a run Context::weights() is for
/// models of ZeroOptions::stage 3, for which this throws std::logic_error. Throws
/// std::invalid_argument for a tensor that is sparse, quantized, nested, or on the device `meta`.
Weights weights_of(const torch::nn::Module& model);
template <ModelHandle M>
Weights weights_of(const M& model) {
  return weights_of(detail::existing(model));
}

/// Copies the weights into the model's parameters and buffers, which keep their types and devices.
/// Throws std::invalid_argument, naming the first difference, before anything is copied, where the
/// weights are of another model.
void load(torch::nn::Module& model, const Weights& weights);
template <ModelHandle M>
void load(const M& model, const Weights& weights) {
  load(detail::existing(model), weights);
}

/// A handle of a class that can be made without arguments.
template <class M>
concept ReturnableModel = ModelHandle<M> && requires(M& model) {
  model->is_training();
} && std::is_default_constructible_v<std::remove_reference_t<decltype(*std::declval<M&>())>>;

namespace detail {

/// torch::nn::ModuleHolder, or a class that TORCH_MODULE has made of it.
template <class T>
concept ModuleHolder = requires(const T& holder) {
  typename T::ContainedType;
  holder.ptr();
}
&&std::is_base_of_v<torch::nn::Module, typename T::ContainedType>;

template <ReturnableModel M>
M made_without_arguments() {
  if constexpr (ModuleHolder<M>)
    return M();
  else
    return std::make_shared<typename M::element_type>();
}

template <ModelHandle M>
using ClassOf = std::remove_cvref_t<decltype(*std::declval<M&>())>;

/// Throws std::logic_error for a model of another class than the one as which it travels.
void check_own_class(const torch::nn::Module& model, const std::type_info& as);
/// Loads into a model that was made without arguments. Throws std::invalid_argument, which says
/// what to send instead, where that is another model. `name`: of the model's class.
void load_like(torch::nn::Module& model, const Weights& weights, bool is_training,
               std::string_view name);
void save_model(troupe::detail::OutArchive& archive, const torch::nn::Module& model);
/// `name`: of the class, for errors.
void load_model(troupe::detail::InArchive& archive, torch::nn::Module& model,
                std::string_view name);

}  // namespace detail
}  // namespace troupe::train

namespace troupe::detail {

template <class Module>
requires std::is_base_of_v<torch::nn::Module, Module>
inline constexpr bool has_code_for_pointer<std::shared_ptr<Module>> = true;

void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const train::Weights& weights);
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, train::Weights& weights);

/// Throws std::logic_error for a model of ZeroOptions::stage 3, whose values are not all there, and
/// for one of a class that is derived from Module.
template <class Module>
requires std::is_base_of_v<torch::nn::Module, Module>
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const Module& model) {
  static_assert(std::is_default_constructible_v<Module>,
                "troupe: the receiver of a model makes one without arguments: give the class a "
                "default constructor, or send train::Weights (ctx.weights(model))");
  static_assert(!std::is_same_v<Module, torch::nn::Module>,
                "troupe: the receiver of a model makes one of its class: send a pointer to the "
                "model's own class, or train::Weights (ctx.weights(model))");
  train::detail::check_own_class(model, typeid(Module));
  train::detail::save_model(archive, model);
}

/// Throws DecodeError for bytes of another model.
template <class Module>
requires std::is_base_of_v<torch::nn::Module, Module>
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, Module& model) {
  train::detail::load_model(archive, model, type_name<Module>);
}

/// As the std::shared_ptr that the holder is made of.
template <train::detail::ModuleHolder Holder>
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const Holder& holder) {
  archive(holder ? holder.ptr() : std::shared_ptr<typename Holder::ContainedType>());
}

template <train::detail::ModuleHolder Holder>
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, Holder& holder) {
  std::shared_ptr<typename Holder::ContainedType> model;
  archive(model);
  holder = std::move(model);
}

}  // namespace troupe::detail
