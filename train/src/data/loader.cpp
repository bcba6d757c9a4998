#include <troupe/train/loader.hpp>

#include <algorithm>
#include <stdexcept>

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

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

Batch Loader::batch(std::size_t at) const {
  const auto from = at * static_cast<std::size_t>(batch_);
  const auto rows = std::min(static_cast<std::size_t>(batch_), indices_.size() - from);
  const auto picked = at::from_blob(const_cast<std::int64_t*>(indices_.data() + from),
                                    {static_cast<std::int64_t>(rows)}, at::kLong);
  auto pick = [&](const at::Tensor& all) {
    return all.index_select(0, picked.to(all.device())).to(device_);
  };
  return {pick(data_.data), pick(data_.target)};
}

Loader::Iterator::Iterator(const Loader* loader, std::size_t at) : loader_(loader), at_(at) {
  fetch();
}

Loader::Iterator& Loader::Iterator::operator++() {
  ++at_;
  fetch();
  return *this;
}

void Loader::Iterator::fetch() {
  if (at_ < loader_->size()) batch_ = loader_->batch(at_);
}

}  // namespace troupe::train
