#include <troupe/train/data/loader.hpp>

#include <algorithm>
#include <stdexcept>

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "progress/step_teller.hpp"

namespace troupe::train {
namespace {

std::int64_t rows_of(const at::Tensor& tensor) { return tensor.dim() == 0 ? 0 : tensor.size(0); }

}  // namespace

Loader::Loader(Dataset data, std::vector<std::int64_t> indices, std::int64_t batch,
               c10::Device device)
    : data_(std::move(data)), indices_(std::move(indices)), batch_(batch), device_(device) {
  if (batch < 1)
    throw std::invalid_argument(fmt::format("a loader with batches of {} rows", batch));
  if (rows_of(data_.data) != rows_of(data_.target)) {
    throw std::invalid_argument(fmt::format("a data set of {} rows with targets for {}",
                                            rows_of(data_.data), rows_of(data_.target)));
  }
}

std::size_t Loader::size() const {
  const auto batch = static_cast<std::size_t>(batch_);
  return (indices_.size() + batch - 1) / batch;
}

std::size_t Loader::rows_of_batch(std::size_t at) const {
  const auto batch = static_cast<std::size_t>(batch_);
  return std::min(batch, indices_.size() - at * batch);
}

Batch Loader::batch(std::size_t at) const {
  const auto from = at * static_cast<std::size_t>(batch_);
  const auto rows = rows_of_batch(at);
  const auto picked = at::from_blob(const_cast<std::int64_t*>(indices_.data() + from),
                                    {static_cast<std::int64_t>(rows)}, at::kLong);
  auto pick = [&](const at::Tensor& all) {
    return all.index_select(0, picked.to(all.device())).to(device_);
  };
  return {pick(data_.data), pick(data_.target)};
}

Loader::Iterator Loader::begin() const {
  return {this, 0, teller_ ? teller_->begin_pass(epoch_) : detail::LoaderPass{}};
}

Loader::Iterator::Iterator(const Loader* loader, std::size_t at, detail::LoaderPass pass)
    : loader_(loader), at_(at), pass_(pass) {
  fetch();
}

Loader::Iterator& Loader::Iterator::operator++() {
  if (loader_->teller_) {
    const auto rows = static_cast<std::int64_t>(loader_->rows_of_batch(at_));
    loader_->teller_->on_batch(pass_, static_cast<std::int64_t>(at_) + 1,
                               static_cast<std::int64_t>(loader_->size()), rows);
  }
  ++at_;
  fetch();
  return *this;
}

void Loader::Iterator::fetch() {
  if (at_ < loader_->size()) batch_ = loader_->batch(at_);
}

}  // namespace troupe::train
