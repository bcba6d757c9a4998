#include "zero/optimizer/optimizer_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include "parallel/tensor_type.hpp"
#include "precision/clip.hpp"
#include "precision/divided.hpp"
#include "zero/layout.hpp"

namespace troupe::train {
namespace detail {

void refuse_to_save_part() {
  throw std::logic_error(
      "torch::save of an optimizer whose state is cut among the ranks (ContextOptions::zero), or "
      "which has values in float32 (mixed_precision.master_weights): use ctx.checkpoint(model, "
      "optimizer), in which each rank writes its part");
}

at::Tensor loss_of(const std::function<at::Tensor()>& closure) {
  if (!closure) return {};
  const c10::AutoGradMode with_gradients(true);
  return closure();
}

}  // namespace detail

namespace {

using torch::optim::Optimizer;

/// The tensors of a group of parameters that fit into one buffer.
std::vector<std::vector<NamedTensor>> by_type(const std::vector<NamedTensor>& group) {
  std::vector<std::vector<NamedTensor>> sorted;
  for (const auto& parameter : group) {
    const auto same = std::find_if(sorted.begin(), sorted.end(), [&](auto& flat) {
      return flat.front().tensor.options().type_equal(parameter.tensor.options()) &&
             flat.front().tensor.device() == parameter.tensor.device();
    });
    if (same == sorted.end())
      sorted.push_back({parameter});
    else
      same->push_back(parameter);
  }
  return sorted;
}

const torch::optim::OptimizerParamState* state_of(const Optimizer& optimizer,
                                                  const at::Tensor& tensor) {
  const auto& states = optimizer.state();
  const auto found = states.find(tensor.unsafeGetTensorImpl());
  return found == states.end() ? nullptr : found->second.get();
}

}  // namespace

/// While this lives, the optimizer has the pieces of one of its parts in place of the model's
/// parameters.
class OptimizerParts::PiecesInPlace {
 public:
  PiecesInPlace(Optimizer& optimizer, const Part& part)
      : optimizer_(optimizer), pieces_(optimizer.param_groups().size()) {
    const auto& flat = *part.flat;
    for (std::size_t i = 0; i < flat.pieces().size(); ++i)
      pieces_[part.groups[flat.pieces()[i].parameter]].push_back(flat.piece_tensors()[i]);
    exchange();
  }
  ~PiecesInPlace() { exchange(); }
  PiecesInPlace(const PiecesInPlace&) = delete;
  PiecesInPlace& operator=(const PiecesInPlace&) = delete;

 private:
  void exchange() {
    for (std::size_t group = 0; group < pieces_.size(); ++group)
      optimizer_.param_groups()[group].params().swap(pieces_[group]);
  }

  Optimizer& optimizer_;
  std::vector<std::vector<at::Tensor>> pieces_;
};

/// While this lives, the pieces of one part have their gradients: copies that were divided, or the
/// parameters'.
class OptimizerParts::GradientsLent {
 public:
  // Delegates, so that the destructor runs where a gradient cannot be lent.
  GradientsLent(const Part& part, bool has_copies) : GradientsLent(*part.flat, !has_copies) {
    if (lends_) flat_.lend_gradients(part.averages.get(), false);
  }
  ~GradientsLent() {
    if (lends_) flat_.drop_gradients();
  }
  GradientsLent(const GradientsLent&) = delete;
  GradientsLent& operator=(const GradientsLent&) = delete;

 private:
  GradientsLent(Flat& flat, bool lends) : flat_(flat), lends_(lends) {}

  Flat& flat_;
  const bool lends_;  // else there are copies, which stay until drop_copies()
};

OptimizerParts::OptimizerParts(const OptimizerKind& kind,
                               std::vector<std::vector<NamedTensor>> groups,
                               Communicator& communicator, Communicator& control, bool is_cut)
    : kind_(kind),
      groups_(std::move(groups)),
      communicator_(communicator),
      control_(control),
      is_cut_(is_cut) {
  const int rank = is_cut ? control.rank() : 0;
  const int ranks = is_cut ? control.size() : 1;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (auto& parameters : by_type(groups_[group])) {
      const std::vector<std::size_t> all_of_it(parameters.size(), group);
      parts_.push_back({all_of_it, std::make_shared<Flat>(std::move(parameters), rank, ranks)});
    }
  }
}

OptimizerParts::OptimizerParts(const OptimizerKind& kind,
                               std::vector<std::vector<NamedTensor>> groups,
                               const std::vector<CutModel>& models, Communicator& communicator,
                               Communicator& control, std::shared_ptr<Gathering> gathering)
    : kind_(kind),
      groups_(std::move(groups)),
      communicator_(communicator),
      control_(control),
      cuts_gradients_(true),
      gathering_(std::move(gathering)) {
  std::unordered_map<const void*, std::size_t> group_of;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const auto& [name, tensor] : groups_[group])
      group_of.emplace(tensor.unsafeGetTensorImpl(), group);
  }
  for (const auto& model : models) add_parts(model, group_of);
  for (const auto& part : parts_) {
    for (const auto& [name, tensor] : part.flat->parameters())
      group_of.erase(tensor.unsafeGetTensorImpl());
  }
  for (const auto& group : groups_) {
    for (const auto& parameter : group) {
      if (group_of.contains(parameter.tensor.unsafeGetTensorImpl())) whole_.push_back(parameter);
    }
  }
}

void OptimizerParts::keep_masters(Flat::Masters masters, InitialMasters* initial) {
  for (auto& part : parts_) {
    auto kept = part.flat->keep_masters(masters, [&](const at::Tensor& parameter) {
      return initial != nullptr ? initial->find(parameter) : at::Tensor();
    });
    if (kept) masters_.push_back(std::move(kept));
    if (initial == nullptr) continue;
    for (const auto& parameter : part.flat->parameters()) initial->forget(parameter.tensor);
  }
  has_masters_ = !masters_.empty();
}

/// `groups`: of the optimizer's parameters.
void OptimizerParts::add_parts(const CutModel& model,
                               const std::unordered_map<const void*, std::size_t>& groups) {
  const NamedTensor* here = nullptr;
  const NamedTensor* elsewhere = nullptr;
  for (const auto& bucket : model) {
    for (const auto& parameter : bucket.values->parameters())
      (groups.contains(parameter.tensor.unsafeGetTensorImpl()) ? here : elsewhere) = &parameter;
  }
  if (here == nullptr) return;
  if (elsewhere != nullptr) {
    throw std::invalid_argument(
        fmt::format("the optimizer has parameter {} of a model and not {}: with "
                    "ContextOptions::zero.stage 2 and 3 one optimizer has all trained parameters "
                    "of a model, in as many groups as you like; freeze the others before the model "
                    "is prepared, or use stage 1",
                    here->name, elsewhere->name));
  }
  for (const auto& [values, averages] : model) {
    std::vector<std::size_t> own;
    for (const auto& [name, tensor] : values->parameters())
      own.push_back(groups.at(tensor.unsafeGetTensorImpl()));
    parts_.push_back({std::move(own), values, averages});
  }
}

void OptimizerParts::check_gradients() const {
  for (const auto& part : parts_) {
    if (part.averages) part.averages->check_averages();
  }
  for (const auto& [name, tensor] : whole_) {
    if (!tensor.grad().defined()) continue;
    throw std::logic_error(fmt::format(
        "parameter {} has a gradient, and was frozen when its model was prepared: prepare the "
        "model and the optimizer again to train it",
        name));
  }
}

/// Of this rank's part, as far as they are here.
std::vector<at::Tensor> OptimizerParts::gradients() const {
  std::vector<at::Tensor> found;
  for (const auto& [groups, flat, averages] : parts_) {
    for (std::size_t i = 0; i < flat->pieces().size(); ++i) {
      auto gradient = has_copies_ ? flat->piece_tensors()[i].grad() : averages->average(i);
      if (gradient.defined()) found.push_back(std::move(gradient));
    }
  }
  return found;
}

void OptimizerParts::drop_copies() {
  if (!std::exchange(has_copies_, false)) return;
  for (auto& part : parts_) part.flat->drop_gradients();
}

bool OptimizerParts::divide_gradients(double scale) {
  if (gathering_) gathering_->meet();  // who is late may still need parameters
  check_gradients();
  if (!has_masters_) return divide(gradients(), scale);
  // What parameters have as gradients stays as it is. Averages are this rank's alone.
  for (auto& part : parts_)
    part.flat->lend_gradients(part.averages.get(), /*copies=*/part.averages == nullptr);
  has_copies_ = true;
  return divide(gradients(), scale);
}

double OptimizerParts::clip_gradients(double max_norm) {
  check_gradients();
  const auto gradients = this->gradients();
  auto squares = sum_of_squares(gradients);
  if (is_cut_) control_.all_reduce(std::span(&squares, 1));
  return clip(gradients, std::sqrt(squares), max_norm);
}

void OptimizerParts::check_parameters(const Optimizer& optimizer) const {
  const auto refuse = [](const std::string& what) {
    throw std::logic_error(
        fmt::format("{} after the optimizer was prepared: make and prepare an optimizer with all "
                    "parameters, or "
                    "one more for those that are new",
                    what));
  };
  const auto& groups = optimizer.param_groups();
  if (groups.size() != groups_.size()) refuse("the number of its groups was changed");
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto& own = groups_[group];
    const auto& params = groups[group].params();
    if (params.size() != own.size())
      refuse(fmt::format("the number of parameters of group {} was changed", group));
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!params[i].is_same(own[i].tensor))
        refuse(fmt::format("parameter {} was replaced by another tensor", own[i].name));
    }
  }
}

void OptimizerParts::step(Optimizer& optimizer, const std::function<void()>& update) {
  check_parameters(optimizer);
  check_gradients();
  for (const auto& part : parts_) {
    if (!has_copies_) part.flat->check_gradients(part.averages.get());
  }
  if (gathering_) gathering_->meet();
  for (auto& part : parts_) part.flat->move_back();
  if (gathering_) gathering_->settle();  // to move back is to use
  cut_state(optimizer);
  for (auto& part : parts_) part.flat->begin_update();
  // One after the other, as gradients in another type or memory are copies.
  for (const auto& part : parts_) {
    const GradientsLent lent(part, has_copies_);
    const PiecesInPlace pieces(optimizer, part);
    update();
  }
  for (auto& part : parts_) part.flat->end_update(communicator_);
}

void OptimizerParts::cut_state(Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  for (auto& part : parts_) {
    auto& flat = *part.flat;
    for (std::size_t i = 0; i < flat.parameters().size(); ++i) {
      const auto& tensor = flat.parameters()[i].tensor;
      const auto* whole = state_of(optimizer, tensor);
      if (whole == nullptr) continue;
      take_state(optimizer, flat, i, kind_.read(*whole));
      optimizer.state().erase(tensor.unsafeGetTensorImpl());
    }
  }
}

void OptimizerParts::take_state(Optimizer& optimizer, Flat& flat, std::size_t parameter,
                                const ElementState& whole) {
  const auto& [name, tensor] = flat.parameters()[parameter];
  for (const auto& values : whole.tensors) {
    if (values.defined() && values.sizes() != tensor.sizes()) {
      throw std::logic_error(fmt::format(
          "the optimizer's state of parameter {} has another size than the parameter", name));
    }
  }
  for (std::size_t i = 0; i < flat.pieces().size(); ++i) {
    const auto& piece = flat.pieces()[i];
    if (piece.parameter != parameter) continue;
    ElementState own{.steps = whole.steps, .tensors = {}};
    for (const auto& values : whole.tensors) {
      own.tensors.push_back(values.defined()
                                ? flat.in_order(parameter, values)
                                      .narrow(0, piece.first, piece.count)
                                      .to(flat.options(), /*non_blocking=*/false, /*copy=*/true)
                                : at::Tensor());
    }
    optimizer.state()[flat.piece_tensors()[i].unsafeGetTensorImpl()] = kind_.make(own);
  }
}

bool OptimizerParts::take_state(Optimizer& optimizer, const at::Tensor& parameter,
                                const ElementState& whole) {
  const at::NoGradGuard no_grad;
  for (auto& part : parts_) {
    const auto& parameters = part.flat->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].tensor.is_same(parameter)) continue;
      take_state(optimizer, *part.flat, i, whole);
      return true;
    }
  }
  return false;
}

std::optional<c10::Device> OptimizerParts::device_of_state() const {
  if (parts_.empty()) return std::nullopt;
  return parts_.front().flat->options().device();
}

std::vector<std::shared_ptr<Flat>> OptimizerParts::flats() const {
  std::vector<std::shared_ptr<Flat>> flats;
  for (const auto& part : parts_) flats.push_back(part.flat);
  return flats;
}

}  // namespace troupe::train
