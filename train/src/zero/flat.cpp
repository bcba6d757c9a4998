#include "zero/flat.hpp"

#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "parallel/in_place.hpp"
#include "parallel/tensor_type.hpp"
#include "precision/master_weights.hpp"
#include "zero/gradient_shard.hpp"
#include "zero/layout.hpp"

namespace troupe::train {
namespace {

constexpr std::int64_t kNever = -1;  // no number of writes

/// Elements in the order of memory: of a tensor without gaps, whichever its strides are.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.as_strided({tensor.numel()}, {1});
}

at::Tensor copy_in_main_memory(const at::Tensor& tensor) {
  return tensor.to(tensor.options().device(at::kCPU), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

Flat::Flat(std::vector<NamedTensor> parameters, int rank, int ranks, Holds holds,
           std::optional<c10::Device> device)
    : parameters_(std::move(parameters)),
      partition_(train::partition(elements_of(parameters_), ranks)),
      pieces_(partition_.pieces_of(rank)),
      rank_(rank) {
  const at::NoGradGuard no_grad;
  const auto& first = parameters_.front().tensor;
  data_type_of(first);  // refuses a type that cannot be sent
  values_ = at::zeros({partition_.total()},
                      first.options().requires_grad(false).device(device.value_or(first.device())));
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    places_.push_back(laid_out(values_, partition_.offsets[i], parameters_[i].tensor));
  if (holds != Holds::Whole) {
    memory_ = std::make_unique<LentMemory>(values_);
    for (std::size_t i = 0; i < places_.size(); ++i)
      places_[i] = memory_->view(partition_.offsets[i], places_[i]);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) move_into_place(i);
  versions_before_ = versions();
  own_ = own_in_values();
  if (holds == Holds::Part) own_ = own_.clone();
  if (holds == Holds::PartInMainMemory) own_ = copy_in_main_memory(own_);
  cut_into_pieces(own_);
}

void Flat::cut_into_pieces(const at::Tensor& part) {
  piece_tensors_.clear();
  for (const auto& piece : pieces_) {
    const auto at = partition_.offsets[piece.parameter] + piece.first - rank_ * partition_.part;
    piece_tensors_.push_back(part.narrow(0, at, piece.count).detach());
  }
}

std::shared_ptr<void> Flat::keep_masters(
    Masters masters, const std::function<at::Tensor(const at::Tensor&)>& value_of) {
  const at::NoGradGuard no_grad;
  auto options = own_.options();
  if (masters.in_float32 && is_small(own_)) options = options.dtype(at::kFloat);
  if (masters.in_main_memory) options = options.device(at::kCPU);
  if (options.type_equal(own_.options()) && options.device() == own_.device()) return nullptr;
  if (auto used = masters_used_.lock()) return used;
  release();
  masters_ = own_.to(options);
  cut_into_pieces(masters_);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto& [parameter, first, count] = pieces_[i];
    const auto value = value_of(parameters_[parameter].tensor);
    if (!value.defined()) continue;
    piece_tensors_[i].copy_(in_order(parameter, value).narrow(0, first, count));
  }
  take_written(masters_, own_);
  const auto used = std::make_shared<int>();
  masters_used_ = used;
  return used;
}

at::Tensor Flat::own_in_values() const {
  return values_.narrow(0, rank_ * partition_.part, partition_.part);
}

void Flat::gather(Communicator& communicator) {
  const at::NoGradGuard no_grad;
  if (partition_.ranks == 1 && !holds_part()) return;
  if (!holds_part()) return gather(communicator, own_.clone(), values_);
  if (is_whole()) {
    keep_own();
    return gather(communicator, own_in_values(), at::empty_like(values_));
  }
  const auto [in, out, count, type] = begin_gather();
  try {
    if (count > 0) communicator.all_gather(in, out, count, type);
  } catch (...) {
    end_gather(false);
    throw;
  }
  end_gather(true);
}

Flat::AllGather Flat::begin_gather() {
  const at::NoGradGuard no_grad;
  auto sent = own_.to(values_.device());
  finish_writes(sent);  // and with them, what used the memory that is taken now
  auto* const buffer = memory_->prepare();
  sent_ = std::move(sent);
  return {.in = sent_.const_data_ptr(),
          .out = buffer,
          .count = static_cast<std::size_t>(sent_.numel()),
          .type = data_type_of(sent_)};
}

void Flat::end_gather(bool has_come) {
  drop_sent();
  if (!has_come) return memory_->drop_prepared();
  memory_->take();
  versions_gathered_ = versions();
}

void Flat::gather(Communicator& communicator, const at::Tensor& own, const at::Tensor& into) {
  if (into.numel() == 0) return;
  finish_writes(own);  // and with them, what used this memory before
  communicator.all_gather(own.const_data_ptr(), into.data_ptr(),
                          static_cast<std::size_t>(own.numel()), data_type_of(own));
}

void Flat::release() {
  if (!holds_part() || !is_whole() || holders_ > 0) return;
  keep_own();
  memory_->give_back();
}

/// The rank's part becomes what the buffer has of it.
void Flat::keep_own() {
  // On another device that is a copy for which everything waits.
  if (own_.device() != values_.device() && versions() == versions_gathered_) return;
  const at::NoGradGuard no_grad;
  own_.copy_(own_in_values());
}

/// LibTorch counts what is written to a tensor in place.
std::int64_t Flat::versions() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters_)
    sum += static_cast<std::int64_t>(
        parameter.tensor.unsafeGetTensorImpl()->version_counter().current_version());
  return sum;
}

std::int64_t Flat::writes() const { return free_ > 0 ? counted_ : versions() - versions_before_; }

void Flat::set_writes_are_free(bool free) {
  if (free) versions_gathered_ = kNever;  // what reaches for memory may write to it, uncounted
  if (free && free_ == 0) counted_ = writes();
  free_ += free ? 1 : -1;
  if (free_ == 0) versions_before_ = versions() - counted_;
}

void Flat::dissolve() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto tensor = parameters_[i].tensor;
    if (tensor.has_storage() && tensor.storage().is_alias_of(places_[i].storage()))
      tensor.set_data(copy_in_main_memory(tensor.detach()));
  }
  if (memory_) {
    memory_->set_owner({});
    memory_->give_back();
  }
  dissolved_ = true;
}

void Flat::begin_update() {
  if (holders_ > 0) {
    throw std::logic_error(
        "step() while a guard of ctx.gathered() lives, whose parameters would be old then: end the "
        "guard before");
  }
  TORCH_INTERNAL_ASSERT(!sent_.defined(), "the part of a bucket that is coming is not written to");
  release();
  const at::NoGradGuard no_grad;
  if (masters_.defined()) take_written(masters_, own_);
}

void Flat::end_update(Communicator& communicator) {
  ++updates_;
  if (masters_.defined()) {
    const at::NoGradGuard no_grad;
    own_.copy_(masters_);
  }
  if (!holds_part()) gather(communicator);
  // A graph that was made before the step must not be gone back through with the new values.
  const auto before = versions();
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.grad().defined()) tensor.unsafeGetTensorImpl()->bump_version();
  }
  versions_before_ += versions() - before;
}

bool Flat::is_in_place(std::size_t parameter) const {
  return train::is_in_place(parameters_[parameter].tensor, places_[parameter]);
}

void Flat::move_back() {
  if (dissolved_) {
    throw std::logic_error(fmt::format(
        "the model of parameter {} was prepared again after its optimizer: make and prepare the "
        "optimizer again too",
        parameters_.front().name));
  }
  take_values();
}

void Flat::move_into_place(std::size_t parameter) {
  auto tensor = parameters_[parameter].tensor;
  places_[parameter].copy_(tensor.detach());  // which brings the buffer
  versions_gathered_ = kNever;                // no write of the parameter is counted here
  tensor.set_data(places_[parameter]);
}

void Flat::take_values() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& tensor = parameters_[i].tensor;
    const auto& place = places_[i];
    if (tensor.sizes() != place.sizes() || tensor.scalar_type() != place.scalar_type() ||
        tensor.device() != place.device()) {
      throw std::logic_error(
          fmt::format("parameter {} was given another size, type or device after its optimizer was "
                      "prepared: make and prepare the optimizer again after such a change",
                      parameters_[i].name));
    }
    if (!is_in_place(i)) move_into_place(i);
  }
}

/// Undefined where the parameter has none.
at::Tensor Flat::gradient_of(std::size_t piece, const GradientShard* averages) const {
  if (averages != nullptr) return averages->average(piece);
  const auto& [parameter, first, count] = pieces_[piece];
  const auto& [name, tensor] = parameters_[parameter];
  const auto& gradient = tensor.grad();
  if (!gradient.defined()) return {};
  if (gradient.layout() != at::kStrided) {
    throw std::invalid_argument(
        fmt::format("the gradient of {} is sparse; ZeRO and master weights update by dense "
                    "gradients only",
                    name));
  }
  return in_order(parameter, gradient).narrow(0, first, count);
}

void Flat::lend_gradients(const GradientShard* averages, bool copies) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    auto gradient = gradient_of(i, averages);
    auto& piece = piece_tensors_[i];
    if (gradient.defined())
      gradient = gradient.to(piece.device(), piece.scalar_type(), /*non_blocking=*/false, copies);
    piece.mutable_grad() = std::move(gradient);
  }
}

void Flat::check_gradients(const GradientShard* averages) const {
  for (std::size_t i = 0; i < pieces_.size(); ++i) gradient_of(i, averages);
}

void Flat::drop_gradients() {
  for (auto& piece : piece_tensors_) piece.mutable_grad() = at::Tensor();
}

at::Tensor Flat::in_order(std::size_t parameter, const at::Tensor& tensor) const {
  const auto& place = places_[parameter];
  if (tensor.strides() == place.strides() && !tensor.is_neg() && !tensor.is_conj())
    return in_memory_order(tensor.detach());
  auto copy = at::empty_strided(place.sizes(), place.strides(), tensor.options());
  copy.copy_(tensor.detach());
  return in_memory_order(copy);
}

std::vector<std::int64_t> Flat::strides_of(std::size_t parameter) const {
  const auto& place = places_[parameter];
  return place.is_contiguous() ? std::vector<std::int64_t>() : place.strides().vec();
}

at::Tensor Flat::saved_values(std::size_t piece, const InitialMasters* initial) const {
  const at::NoGradGuard no_grad;
  const auto& [parameter, first, count] = pieces_[piece];
  const auto& tensor = parameters_[parameter].tensor;
  const auto cut = [&, from = first, elements = count](const at::Tensor& whole) {
    return in_order(parameter, whole).narrow(0, from, elements);
  };
  const auto here = holds_part() && is_whole() ? own_in_values() : own_;
  const auto at = partition_.offsets[parameter] + first - rank_ * partition_.part;
  const auto values = is_in_place(parameter) ? here.narrow(0, at, count) : cut(tensor);
  at::Tensor master;
  if (masters_.defined()) {
    master = piece_tensors_[piece].detach().clone();
  } else if (initial != nullptr && is_small(values)) {
    const auto value = initial->find(tensor);
    master = value.defined() ? cut(value).clone() : values.to(at::kFloat);
  } else {
    return values;
  }
  take_written(master, values);
  return master;
}

}  // namespace troupe::train
