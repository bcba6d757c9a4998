#include "zero/flat.hpp"

#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "parallel/tensor_type.hpp"
#include "zero/gradient_shard.hpp"
#include "zero/layout.hpp"

namespace troupe::train {
namespace {

/// Elements in the order of memory: of a tensor without gaps, whichever its strides are.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.as_strided({tensor.numel()}, {1});
}

}  // namespace

Flat::Flat(std::vector<NamedTensor> parameters, int rank, int ranks)
    : parameters_(std::move(parameters)),
      partition_(train::partition(elements_of(parameters_), ranks)),
      pieces_(partition_.pieces_of(rank)),
      rank_(rank) {
  const at::NoGradGuard no_grad;
  data_type_of(parameters_.front().tensor);  // refuses a type that cannot be sent
  values_ = at::zeros({partition_.total()}, parameters_.front().tensor.options());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    places_.push_back(laid_out(values_, partition_.offsets[i], parameters_[i].tensor));
  for (const auto& piece : pieces_) {
    piece_tensors_.push_back(
        values_.narrow(0, partition_.offsets[piece.parameter] + piece.first, piece.count).detach());
  }
  move_back();
}

at::Tensor Flat::own_part() const {
  return values_.narrow(0, rank_ * partition_.part, partition_.part);
}

void Flat::move_back() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto tensor = parameters_[i].tensor;
    const auto& place = places_[i];
    if (tensor.sizes() != place.sizes() || tensor.scalar_type() != place.scalar_type() ||
        tensor.device() != place.device()) {
      throw std::logic_error(
          fmt::format("parameter {} was given another size, type or device after its optimizer was "
                      "prepared: make and prepare the optimizer again after such a change",
                      parameters_[i].name));
    }
    if (tensor.const_data_ptr() == place.const_data_ptr() && tensor.strides() == place.strides())
      continue;
    place.copy_(tensor.detach());
    tensor.set_data(place);
  }
}

void Flat::lend_gradients() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto& [parameter, first, count] = pieces_[i];
    const auto& [name, tensor] = parameters_[parameter];
    const auto& gradient = tensor.grad();
    auto& lent = piece_tensors_[i].mutable_grad();
    if (!gradient.defined()) {
      lent = at::Tensor();
    } else if (gradient.layout() != at::kStrided) {
      throw std::invalid_argument(
          fmt::format("the gradient of {} is sparse; ZeRO updates by dense gradients only", name));
    } else {
      lent = in_order(parameter, gradient).narrow(0, first, count);
    }
  }
}

void Flat::lend_gradients(const GradientShard& averages) {
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    piece_tensors_[i].mutable_grad() = averages.average(i);
}

void Flat::drop_gradients() {
  for (auto& piece : piece_tensors_) piece.mutable_grad() = at::Tensor();
}

at::Tensor Flat::in_order(std::size_t parameter, const at::Tensor& tensor) const {
  const auto& place = places_[parameter];
  if (tensor.strides() == place.strides() && tensor.device() == place.device() &&
      !tensor.is_neg() && !tensor.is_conj())
    return in_memory_order(tensor.detach());
  auto copy = at::empty_like(place, tensor.options().device(place.device()));
  copy.copy_(tensor.detach());
  return in_memory_order(copy);
}

}  // namespace troupe::train
