#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace troupe::train {

class Context;

namespace detail {
class StepTeller;
/// From one begin() of a loader on.
struct LoaderPass {
  std::uint64_t id = 0;
  int epoch = 0;  ///< for which the loader was made
  std::chrono::steady_clock::time_point began{};
};
}  // namespace detail

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
/// rows when the loop reaches it. One thread may iterate, any number of times. A loop over a loader
/// of a context is what a progress bar counts (ShowProgress): a batch is done when the loop leaves
/// it.
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

    Iterator(const Loader* loader, std::size_t at, detail::LoaderPass pass = {});
    Batch& operator*() { return batch_; }
    Batch* operator->() { return &batch_; }
    Iterator& operator++();
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    void fetch();
    const Loader* loader_;
    std::size_t at_;
    detail::LoaderPass pass_;
    Batch batch_;
  };
  Iterator begin() const;
  Iterator end() const { return {this, size()}; }

 private:
  friend class Context;
  std::size_t rows_of_batch(std::size_t at) const;
  Batch batch(std::size_t at) const;

  Dataset data_;
  std::vector<std::int64_t> indices_;
  std::int64_t batch_;
  c10::Device device_;
  int epoch_ = 0;
  std::shared_ptr<detail::StepTeller> teller_;  // nullptr: nobody wants to know what is done
};

}  // namespace troupe::train
