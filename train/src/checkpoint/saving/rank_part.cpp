#include "checkpoint/saving/rank_part.hpp"

#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "checkpoint/optimizer_archive.hpp"
#include "checkpoint/parameter_labels.hpp"
#include "precision/scalar_type.hpp"
#include "safetensors/dtype.hpp"
#include "safetensors/values.hpp"

namespace troupe::train {
namespace {

/// A tensor of the whole, without its pieces. `type`: of its values in the file.
SavedTensor described(const std::string& name, const at::Tensor& like, at::ScalarType type) {
  const auto entry = safetensors::entry_of(name, at::empty({0}, type));
  return {.type = entry.type, .shape = like.sizes().vec()};
}

}  // namespace

void RankPart::add_cut(const std::vector<std::shared_ptr<Flat>>& buckets) {
  for (const auto& bucket : buckets) {
    for (std::size_t i = 0; i < bucket->parameters().size(); ++i) {
      const auto& tensor = bucket->parameters()[i].tensor;
      cut_.insert_or_assign(tensor.unsafeGetTensorImpl(), Place{bucket, i});
    }
  }
}

std::string RankPart::file_of(const std::string& what) const {
  return fmt::format("{}_rank{}.safetensors", what, rank_);
}

/// `values`: those of the piece, of as many elements.
void RankPart::add_values(const SavedTensor& tensor, const SavedPiece& piece,
                          const at::Tensor& values) {
  auto in_order = safetensors::values_in_order(values);
  if (copies_ && in_order.is_alias_of(values)) in_order = in_order.clone();
  const bool is_whole = values.sizes() == at::IntArrayRef(tensor.shape);
  files_.values[piece.file][piece.key] = {
      .entry = {.type = tensor.type,
                .shape = is_whole ? tensor.shape : std::vector<std::int64_t>{piece.count}},
      .values = in_order.const_data_ptr(),
      .owner = std::make_shared<at::Tensor>(in_order)};
}

/// Rank 0 has it whole.
void RankPart::add_tensor(std::map<std::string, SavedTensor>& tensors, const std::string& file,
                          const std::string& name, const std::string& key,
                          const at::Tensor& tensor) {
  auto why = safetensors::why_no_values(tensor);
  if (why.empty() && !tensor.is_inference()) why = safetensors::why_not_writable(tensor);
  if (!why.empty())
    throw std::invalid_argument(
        fmt::format("a checkpoint cannot have the tensor '{}': {}", name, why));
  auto saved = described(name, tensor, tensor.scalar_type());  // throws on every rank
  if (rank_ != 0) return;
  if (tensor.numel() != 0) {
    saved.pieces.push_back({.file = file_of(file), .key = key, .count = tensor.numel()});
    add_values(saved, saved.pieces.back(), tensor);
  }
  tensors.emplace(name, std::move(saved));
}

/// `values_of`: of a piece of the bucket that is of this parameter, on this rank; undefined: none.
void RankPart::add_pieces(std::map<std::string, SavedTensor>& tensors, const std::string& file,
                          const std::string& name, const std::string& key, const Place& place,
                          const std::function<at::Tensor(std::size_t piece)>& values_of) {
  const auto& flat = *place.flat;
  if (flat.partition().ranks == 1 && rank_ != 0) return;  // every rank has all pieces
  const auto& like = flat.parameters()[place.parameter].tensor;
  for (std::size_t i = 0; i < flat.pieces().size(); ++i) {
    const auto& [parameter, first, count] = flat.pieces()[i];
    if (parameter != place.parameter) continue;
    const auto values = values_of(i);
    if (!values.defined()) continue;
    auto& saved = tensors[name];
    if (saved.pieces.empty()) {
      saved = described(name, like, values.scalar_type());
      saved.strides = flat.strides_of(parameter);
    }
    if (count == like.numel()) {  // it is written as others know it, row by row
      const auto strides = std::exchange(saved.strides, {});
      saved.pieces.push_back({.file = file_of(file), .key = key, .count = count});
      add_values(
          saved, saved.pieces.back(),
          strides.empty() ? values.view(like.sizes()) : values.as_strided(like.sizes(), strides));
      continue;
    }
    saved.pieces.push_back({.file = file_of(file),
                            .key = fmt::format("{}[{}:{}]", key, first, first + count),
                            .first = first,
                            .count = count});
    add_values(saved, saved.pieces.back(), values);
  }
}

/// A parameter's value in float32, where it is written so.
at::Tensor RankPart::whole_value(const at::Tensor& parameter) const {
  if (initial_ == nullptr || !is_small(parameter)) return parameter.detach();
  auto value = initial_->find(parameter);
  value = value.defined() ? value.clone() : parameter.detach().to(at::kFloat);
  take_written(value, parameter.detach());
  return value;
}

void RankPart::add_model(const torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  const auto file = fmt::format("model{}", manifest_.models.size());
  auto& saved = manifest_.models.emplace_back();
  std::unordered_map<const void*, std::string> names;
  const auto is_known = [&](const std::string& name, const at::Tensor& tensor) {
    const auto [known, is_new] = names.emplace(tensor.unsafeGetTensorImpl(), name);
    if (!is_new && rank_ == 0) saved.shared.emplace(name, known->second);
    return !is_new;
  };
  for (const auto& item : model.named_parameters()) {
    const auto& parameter = item.value();
    if (!parameter.defined() || is_known(item.key(), parameter)) continue;
    const auto cut = cut_.find(parameter.unsafeGetTensorImpl());
    if (cut == cut_.end()) {
      add_tensor(saved.tensors, file, item.key(), item.key(),
                 rank_ == 0 ? whole_value(parameter) : parameter);
      continue;
    }
    if (parameter.numel() == 0) {  // it is in no piece
      if (rank_ == 0)
        saved.tensors.emplace(item.key(),
                              described(item.key(), parameter, parameter.scalar_type()));
      continue;
    }
    const auto& flat = *cut->second.flat;
    add_pieces(saved.tensors, file, item.key(), item.key(), cut->second,
               [&](std::size_t piece) { return flat.saved_values(piece, initial_); });
  }
  for (const auto& item : model.named_buffers()) {
    if (!item.value().defined() || is_known(item.key(), item.value())) continue;
    add_tensor(saved.tensors, file, item.key(), item.key(), item.value());
  }
}

void RankPart::add_state(SavedState& state, const std::string& file, const OptimizerKind& kind,
                         const torch::optim::Optimizer& optimizer, const at::Tensor& parameter,
                         const Place* place) {
  const auto& states = optimizer.state();
  const auto names = kind.tensor_names();
  const auto read = [&](const at::Tensor& tensor) -> std::optional<ElementState> {
    const auto found = states.find(tensor.unsafeGetTensorImpl());
    if (found == states.end()) return std::nullopt;
    auto its = kind.read(*found->second);
    state.steps = its.steps;
    return its;
  };
  // After a load the state is whole until the next step cuts it.
  if (const auto whole = read(parameter)) {
    for (std::size_t t = 0; t < names.size(); ++t) {
      if (whole->tensors[t].defined())
        add_tensor(state.tensors, file, names[t], fmt::format("{}/{}", state.parameter, names[t]),
                   whole->tensors[t]);
    }
    return;
  }
  if (place == nullptr) return;
  for (std::size_t t = 0; t < names.size(); ++t) {
    add_pieces(state.tensors, file, names[t], fmt::format("{}/{}", state.parameter, names[t]),
               *place, [&](std::size_t piece) {
                 const auto own = read(place->flat->piece_tensors()[piece]);
                 return own ? own->tensors[t] : at::Tensor();
               });
  }
}

void RankPart::add_optimizer(const torch::optim::Optimizer& optimizer, const OptimizerParts* parts,
                             const ParameterNames& names) {
  const at::NoGradGuard no_grad;
  const auto number = manifest_.optimizers.size();
  const auto file = fmt::format("optimizer{}", number);
  const auto* kind = OptimizerKind::of(optimizer);
  auto& saved = manifest_.optimizers.emplace_back();
  saved.type = OptimizerKind::name_of(optimizer);
  saved.file = file + ".pt";
  if (rank_ == 0) {
    files_.bytes[saved.file] =
        archive_of(kind != nullptr ? *kind->without_state(optimizer) : optimizer);
  }
  std::unordered_map<const void*, Place> places;
  if (parts != nullptr) {
    for (const auto& flat : parts->flats()) {
      for (std::size_t i = 0; i < flat->parameters().size(); ++i)
        places.emplace(flat->parameters()[i].tensor.unsafeGetTensorImpl(), Place{flat, i});
    }
  }
  const auto labels = parameter_labels(optimizer, names);
  for (std::size_t g = 0; g < labels.size(); ++g) {
    auto& states = saved.groups.emplace_back();
    for (std::size_t p = 0; p < labels[g].size(); ++p) {
      const auto& parameter = optimizer.param_groups()[g].params()[p];
      auto& state = states.emplace_back();
      state.parameter = labels[g][p];
      state.shape = parameter.sizes().vec();
      if (kind == nullptr) continue;  // its archive has the state
      const auto place = places.find(parameter.unsafeGetTensorImpl());
      add_state(state, file, *kind, optimizer, parameter,
                place == places.end() ? nullptr : &place->second);
    }
  }
}

}  // namespace troupe::train
