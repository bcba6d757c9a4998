#pragma once

#include <concepts>
#include <memory>

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// A model as people hold it: a module holder (torch::nn::Linear), or a std::shared_ptr.
template <class M>
concept ModelHandle = std::convertible_to<const M&, std::shared_ptr<torch::nn::Module>> ||
    requires(const M& model) {
  { model.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
  static_cast<bool>(model);
};

namespace detail {

template <class M>
std::shared_ptr<torch::nn::Module> module_of(const M& model) {
  if constexpr (requires { model.ptr(); })
    return model.ptr();  // torch::nn::ModuleHolder
  else
    return model;  // std::shared_ptr<a module>
}

/// Throws std::invalid_argument.
[[noreturn]] torch::nn::Module& no_model();

/// Throws std::invalid_argument where there is none.
template <ModelHandle M>
torch::nn::Module& existing(const M& model) {
  return model ? *module_of(model) : no_model();
}

}  // namespace detail
}  // namespace troupe::train
