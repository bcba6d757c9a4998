#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe::train {

class Context;

namespace detail {

/// The steps of one loop over batches of which the ranks have different numbers. Used by Joined.
class JoinedSteps {
 public:
  /// Throws std::logic_error inside of another such loop of the context.
  explicit JoinedSteps(Context& context);
  ~JoinedSteps();
  JoinedSteps(const JoinedSteps&) = delete;
  JoinedSteps& operator=(const JoinedSteps&) = delete;

  /// A collective. `has_batch`: this rank has a new batch; `can_repeat`: it had one before. ->
  /// whether any rank has a new one.
  bool begin(bool has_batch, bool can_repeat);

 private:
  Context& context_;
  std::int32_t loop_ = 0;   // so many loops were begun before
  std::int32_t steps_ = 0;  // that were begun
};

/// Where a range begins and ends, as a range-based `for` finds that.
template <class Range>
auto bounds_of(Range& range) {
  using std::begin, std::end;
  return std::pair{begin(range), end(range)};
}

}  // namespace detail

/// What Context::join() returns: a range of one pass, with as many steps on every rank as the rank
/// with the most batches has. It begins a step with a collective, and ends where no rank has a
/// batch left.
template <class Batches>
class Joined {
  using Source = std::remove_reference_t<Batches>;
  using Bounds = decltype(detail::bounds_of(std::declval<Source&>()));
  using Batch = std::remove_cvref_t<decltype(*std::declval<Bounds&>().first)>;
  static_assert(std::is_copy_constructible_v<Batch>,
                "ctx.join() keeps a copy of each rank's last batch: give it a range of values that "
                "can be copied, such as pairs of tensors");

 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Joined& loop) : loop_(&loop) {}
    const Batch& operator*() const { return *loop_->batch_; }
    const Batch* operator->() const { return &*loop_->batch_; }
    Iterator& operator++() {
      loop_->advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !loop_->goes_on_; }

   private:
    Joined* loop_;
  };

  Joined(Context& context, Batches&& batches)
      : steps_(context), batches_(std::forward<Batches>(batches)) {}
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  Iterator begin() {
    bounds_.emplace(detail::bounds_of(batches_));
    begin_step();
    return Iterator(*this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  void advance() {
    if (has_batch_) ++bounds_->first;
    begin_step();
  }
  void begin_step() {
    has_batch_ = bounds_->first != bounds_->second;
    if (has_batch_) batch_.emplace(*bounds_->first);
    goes_on_ = steps_.begin(has_batch_, batch_.has_value());
  }

  detail::JoinedSteps steps_;
  Batches batches_;
  std::optional<Bounds> bounds_;  // of the batches that are left
  std::optional<Batch> batch_;    // the last one that there was
  bool has_batch_ = false;
  bool goes_on_ = false;
};

}  // namespace troupe::train
