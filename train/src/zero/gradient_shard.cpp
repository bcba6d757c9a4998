#include "zero/gradient_shard.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "parallel/averaging/narrowing.hpp"
#include "parallel/tensor_type.hpp"
#include "zero/layout.hpp"

namespace troupe::train {

GradientShard::GradientShard(std::vector<NamedTensor> parameters, int rank, int ranks,
                             bool in_main_memory)
    : parameters_(std::move(parameters)),
      partition_(train::partition(elements_of(parameters_), ranks)),
      rank_(rank),
      pieces_(partition_.pieces_of(rank)),
      adds_(parameters_.size()),
      foreign_(parameters_.size()) {
  const auto& first = parameters_.front().tensor;
  data_type_of(first);  // refuses what cannot be reduced
  auto options = first.options().requires_grad(false);
  is_elsewhere_ = in_main_memory && !first.device().is_cpu();
  if (is_elsewhere_) options = options.device(at::kCPU);
  part_ = at::zeros({partition_.part}, options);
  for (const auto& [name, tensor] : parameters_) {
    const auto without_memory = tensor.options().device(at::kMeta).requires_grad(false);
    layouts_.push_back(at::empty_strided(tensor.sizes(), tensor.strides(), without_memory));
    stand_ins_.push_back(at::_efficientzerotensor(tensor.sizes(), without_memory));
  }
}

bool GradientShard::has_stand_in(std::size_t parameter) const {
  return parameters_[parameter].tensor.grad().is_same(stand_ins_[parameter]);
}

bool GradientShard::has_gradient(std::size_t parameter) const {
  return parameters_[parameter].tensor.grad().defined() && !has_stand_in(parameter);
}

// Of another parameter or shard, or what somebody has computed from a stand-in.
bool GradientShard::has_foreign(std::size_t parameter) const {
  return has_gradient(parameter) && parameters_[parameter].tensor.grad().is_meta();
}

void GradientShard::check_stand_in(std::size_t parameter) {
  const bool was_foreign = std::exchange(foreign_[parameter], 0) != 0;
  if (was_foreign || has_foreign(parameter)) refuse_foreign(parameter);
}

void GradientShard::refuse_foreign(std::size_t parameter) const {
  throw std::logic_error(fmt::format(
      "the gradient of {} was replaced after backward(), and with ContextOptions::zero.stage 2 "
      "and 3 a rank has no whole gradient: use ctx.clip_grad_norm() to scale gradients, and "
      "zero_grad() to "
      "drop them. Drop them before a model is prepared again, and prepare its optimizer again "
      "after "
      "it",
      parameters_[parameter].name));
}

void GradientShard::before_gradient(std::size_t parameter) {
  foreign_[parameter] = has_foreign(parameter) ? 1 : 0;
  if (has_gradient(parameter) && foreign_[parameter] == 0) return;
  adds_[parameter] = has_stand_in(parameter) ? 1 : 0;
  parameters_[parameter].tensor.mutable_grad().reset();
}

void GradientShard::reduce(Communicator& communicator, const std::vector<bool>& has_come,
                           const at::Tensor& room) {
  const at::NoGradGuard no_grad;
  const auto all = room.narrow(0, 0, partition_.total());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto place = laid_out(all, partition_.offsets[i], layouts_[i]);
    if (!has_gradient(i)) adds_[i] = has_stand_in(i) ? 1 : 0;
    if (has_come[i] && has_gradient(i))
      copy_narrowed(place, parameters_[i].tensor.grad());
    else
      place.zero_();
  }
  finish_writes(all);  // and with them, what reads the gradients
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (has_come[i] && has_gradient(i)) parameters_[i].tensor.mutable_grad().reset();
  }
  if (partition_.part == 0) return;
  const bool takes =
      is_elsewhere_ || room.scalar_type() != part_.scalar_type() ||
      std::ranges::any_of(pieces_, [&](const Piece& piece) { return adds_[piece.parameter] != 0; });
  const auto averages = takes ? room.narrow(0, partition_.total(), partition_.part) : part_;
  communicator.reduce_scatter(all.const_data_ptr(), averages.data_ptr(),
                              static_cast<std::size_t>(partition_.part), data_type_of(averages),
                              ReduceOp::Average);
  if (takes) take(averages.to(part_.options()));
}

/// Adds them to this rank's part, or puts them in its place, as the parameters say.
void GradientShard::take(const at::Tensor& averages) {
  for (const auto& piece : pieces_) {
    auto kept = own(part_, piece);
    const auto fresh = own(averages, piece);
    if (adds_[piece.parameter] != 0)
      kept.add_(fresh);
    else
      kept.copy_(fresh);
  }
  finish_writes(part_);
}

void GradientShard::finish(std::size_t parameter, bool anywhere) {
  if (!anywhere && adds_[parameter] == 0) return;
  adds_[parameter] = 0;
  parameters_[parameter].tensor.mutable_grad() = stand_ins_[parameter];
}

void GradientShard::check_averages() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (has_foreign(i)) refuse_foreign(i);
    if (!has_gradient(i)) continue;
    throw std::logic_error(fmt::format(
        "the gradient of {} is not an average over the ranks, with which alone a step with "
        "ContextOptions::zero.stage 2 and 3 can update: run the last backward() before step() "
        "outside of "
        "no_sync(), and set no gradients otherwise",
        parameters_[i].name));
  }
}

at::Tensor GradientShard::average(std::size_t piece) const {
  const auto& own_piece = pieces_[piece];
  return has_stand_in(own_piece.parameter) ? own(part_, own_piece) : at::Tensor();
}

at::Tensor GradientShard::own(const at::Tensor& part, const Piece& piece) const {
  const auto first = partition_.offsets[piece.parameter] + piece.first;
  return part.narrow(0, first - rank_ * partition_.part, piece.count);
}

}  // namespace troupe::train
