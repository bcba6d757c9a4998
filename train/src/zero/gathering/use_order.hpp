#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace troupe::train {

/// Which bucket of parameters is used after which, as seen so far: after the same two buckets comes
/// what came after them the last time. Two, as backward goes through the buckets of forward in
/// reverse. A value of one rank.
class UseOrder {
 public:
  static constexpr std::size_t kMost = 100'000;  ///< pairs that are known; then all are forgotten

  /// A bucket is used. One that is used several times on end counts once.
  void note(std::int64_t used);
  /// What is used next is not what follows: the ranks have met.
  void begin_anew();
  /// The first bucket that holds `is_wanted` among those that are expected next; nothing where the
  /// next few hold it not, or are not known.
  std::optional<std::int64_t> next(const std::function<bool(std::int64_t)>& is_wanted) const;

 private:
  using Pair = std::pair<std::int64_t, std::int64_t>;  // used one after the other

  Pair last_{kNone, kNone};
  std::map<Pair, std::int64_t> followers_;

  static constexpr std::int64_t kNone = -1;
};

}  // namespace troupe::train
