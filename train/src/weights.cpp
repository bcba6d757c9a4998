#include <troupe/train/weights.hpp>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <troupe/train/tensor.hpp>

#include "config/name.hpp"
#include "safetensors/model_tensors.hpp"
#include "safetensors/values.hpp"

namespace troupe::train {
namespace {

using safetensors::ModelTensor;

std::vector<ModelTensor> whole_tensors_of(const torch::nn::Module& model) {
  auto tensors = safetensors::tensors_of(model);
  for (const auto& [tensor, names] : tensors) {
    if (!safetensors::has_memory(tensor)) {
      throw std::logic_error(
          fmt::format("the values of '{}' are not here: with stage 3 of ZeRO, use "
                      "ctx.weights(model) on all ranks",
                      names.front()));
    }
  }
  return tensors;
}

std::vector<ModelTensor> readable_tensors_of(const torch::nn::Module& model) {
  auto tensors = whole_tensors_of(model);
  for (const auto& [tensor, names] : tensors) {
    if (const auto why = safetensors::why_no_values(tensor); !why.empty()) {
      throw std::invalid_argument(fmt::format("'{}' of the model cannot be copied: {}",
                                              config::printable(names.front()), why));
    }
  }
  return tensors;
}

[[noreturn]] void other_model(const std::string& why) {
  throw std::invalid_argument("the weights are of another model: " + why);
}

/// Throws std::invalid_argument where these values cannot be copied into the tensor.
void check_fit(const std::string& name, const at::Tensor& into, const at::Tensor& from) {
  const auto shown = config::printable(name);
  if (!from.defined()) other_model(fmt::format("their '{}' is undefined", shown));
  const auto how =
      safetensors::how_different(into, from.sizes().vec(), from.scalar_type(), "weights");
  if (!how.empty()) other_model(fmt::format("'{}' {}", shown, how));
  if (const auto why = safetensors::why_not_writable(into); !why.empty()) {
    throw std::invalid_argument(
        fmt::format("nothing can be read into '{}' of the model: {}", shown, why));
  }
}

/// Which of the weights goes into a tensor of the model. There is one for all names of the tensor.
const at::Tensor& counterpart(const Weights& weights, const ModelTensor& into) {
  const at::Tensor* from = nullptr;
  for (const auto& name : into.names) {
    const auto found = weights.tensors.find(name);
    if (found == weights.tensors.end()) continue;
    if (from != nullptr) {
      other_model(
          fmt::format("'{}' is not in the model as a tensor of its own", config::printable(name)));
    }
    check_fit(name, into.tensor, found->second);
    from = &found->second;
  }
  if (from == nullptr)
    other_model(fmt::format("they have no '{}'", config::printable(into.names.front())));
  return *from;
}

void check_nothing_is_left(const Weights& weights, const std::vector<ModelTensor>& tensors) {
  std::set<std::string_view> names;
  for (const auto& each : tensors) names.insert(each.names.begin(), each.names.end());
  for (const auto& [name, tensor] : weights.tensors) {
    if (!names.contains(name))
      other_model(fmt::format("the model has no '{}'", config::printable(name)));
  }
}

}  // namespace

Weights weights_of(const torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  Weights weights;
  for (const auto& [tensor, names] : readable_tensors_of(model)) {
    auto values = safetensors::values_in_order(tensor);
    if (values.is_alias_of(tensor)) values = values.clone();
    weights.tensors.emplace(names.front(), std::move(values));
  }
  return weights;
}

void load(torch::nn::Module& model, const Weights& weights) {
  const at::NoGradGuard no_grad;
  const auto tensors = whole_tensors_of(model);
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const auto& each : tensors) copies.emplace_back(each.tensor, counterpart(weights, each));
  check_nothing_is_left(weights, tensors);
  for (auto& [into, from] : copies) into.copy_(from);
}

torch::nn::Module& detail::no_model() {
  throw std::invalid_argument("there is no model to save or load: its pointer is null");
}

void detail::check_own_class(const torch::nn::Module& model, const std::type_info& as) {
  if (typeid(model) == as) return;
  throw std::logic_error(
      fmt::format("a {} cannot travel through a pointer to a class that it is derived from: the "
                  "receiver would make one of that class; send a pointer to its own class, or "
                  "train::Weights",
                  model.name()));
}

void detail::load_like(torch::nn::Module& model, const Weights& weights, bool is_training,
                       std::string_view name) {
  try {
    load(model, weights);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        fmt::format("{} (the receiver makes a {} without arguments: where the sender's was made "
                    "with others, send train::Weights and load() it)",
                    error.what(), name));
  }
  model.train(is_training);
}

void detail::save_model(troupe::detail::OutArchive& archive, const torch::nn::Module& model) {
  const auto tensors = readable_tensors_of(model);
  archive(model.is_training(), static_cast<std::uint64_t>(tensors.size()));
  for (const auto& [tensor, names] : tensors) archive(names.front(), tensor);
}

void detail::load_model(troupe::detail::InArchive& archive, torch::nn::Module& model,
                        std::string_view name) {
  bool is_training = false;
  archive(is_training);
  Weights weights;
  archive(weights);
  try {
    load_like(model, weights, is_training, name);
  } catch (const std::invalid_argument& error) {
    throw DecodeError(error.what());
  }
}

}  // namespace troupe::train

namespace troupe::detail {

void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const train::Weights& weights) {
  archive(static_cast<std::uint64_t>(weights.tensors.size()));
  for (const auto& [name, tensor] : weights.tensors) archive(name, tensor);
}

void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, train::Weights& weights) {
  weights.tensors.clear();
  std::uint64_t count = 0;
  archive(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    at::Tensor tensor;
    archive(name, tensor);  // throws where the bytes end
    archive.charge(name.size() + sizeof(at::Tensor));
    weights.tensors.insert_or_assign(std::move(name), std::move(tensor));
  }
}

}  // namespace troupe::detail
