#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace troupe::train {

/// Rows along the first dimension; both have equally many. Main memory or device memory.
struct Dataset {
  at::Tensor data;
  at::Tensor target;
};

/// Some rows of a data set, on the device of the rank.
struct Batch {
  at::Tensor data;
  at::Tensor target;
};

/// The batches of one rank in one epoch: `for (auto& batch : ctx.loader(...))`. Copies a batch's
/// rows when the loop reaches it. One thread may iterate, any number of times.
class Loader {
 public:
  /// `indices`: the rows, in order; `batch`: rows in each batch, fewer in the last.
  /// Throws std::invalid_argument if batch < 1 or the data set's two parts differ in rows.
  Loader(Dataset data, std::vector<std::int64_t> indices, std::int64_t batch, c10::Device device);

  std::size_t size() const;  ///< batches

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator(const Loader* loader, std::size_t at);
    Batch& operator*() { return batch_; }
    Batch* operator->() { return &batch_; }
    Iterator& operator++();
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    void fetch();
    const Loader* loader_;
    std::size_t at_;
    Batch batch_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  Batch batch(std::size_t at) const;

  Dataset data_;
  std::vector<std::int64_t> indices_;
  std::int64_t batch_;
  c10::Device device_;
};

}  // namespace troupe::train
