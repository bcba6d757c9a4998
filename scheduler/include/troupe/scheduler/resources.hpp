#pragma once

#include <algorithm>
#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>
#include <boost/container_hash/hash.hpp>

namespace troupe::scheduler {

/// How much of one resource, counted in ten-thousandths of its unit: thirds of a GPU, taken and
/// returned in any order, add up again to what was there.
class Amount {
 public:
  static constexpr std::int64_t kPerUnit = 10'000;

  constexpr Amount() = default;
  /// To the nearest ten-thousandth. Throws std::invalid_argument if negative, not finite or above
  /// 10^12.
  static Amount units(double units);
  static constexpr Amount whole(std::int64_t units) { return Amount{units * kPerUnit}; }

  constexpr double units() const { return static_cast<double>(ticks_) / kPerUnit; }
  constexpr std::int64_t ticks() const { return ticks_; }
  constexpr bool is_zero() const { return ticks_ == 0; }
  constexpr bool is_whole() const { return ticks_ % kPerUnit == 0; }

  friend constexpr Amount operator+(Amount a, Amount b) { return Amount{a.ticks_ + b.ticks_}; }
  /// Asserts b <= a: no amount is ever negative.
  friend constexpr Amount operator-(Amount a, Amount b) {
    assert(b.ticks_ <= a.ticks_);
    return Amount{a.ticks_ - b.ticks_};
  }
  friend constexpr Amount operator*(Amount a, std::int64_t count) {
    return Amount{a.ticks_ * count};
  }
  /// How many times b is in a. Asserts that it is not zero.
  friend constexpr std::int64_t operator/(Amount a, Amount b) {
    assert(!b.is_zero());
    return a.ticks_ / b.ticks_;
  }
  friend constexpr auto operator<=>(Amount, Amount) = default;

 private:
  constexpr explicit Amount(std::int64_t ticks) : ticks_{ticks} {}
  std::int64_t ticks_ = 0;
};

inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kGpu = "gpu";

/// Named amounts, in the order of the names: what a node has, what a request needs. A value. A name
/// that is absent stands for zero, and zero is never stored, so `{cpu 1}` equals `{cpu 1, gpu 0}`.
class Resources {
 public:
  Resources() = default;
  // Copied with every request and share, and mostly without others: a copied vector costs more,
  // also where it is empty.
  Resources(const Resources& from) : cpu_{from.cpu_}, gpu_{from.gpu_} {
    if (!from.others_.empty()) others_ = from.others_;
  }
  Resources(Resources&&) noexcept = default;
  Resources& operator=(const Resources&) = default;
  Resources& operator=(Resources&&) noexcept = default;
  ~Resources() = default;
  /// Throws std::invalid_argument as Amount::units does. A name given twice counts twice.
  Resources(std::initializer_list<std::pair<std::string_view, double>> units);

  Amount cpu() const { return cpu_; }
  Amount gpu() const { return gpu_; }
  Amount of(std::string_view name) const {
    if (name == kCpu) return cpu_;
    if (name == kGpu) return gpu_;
    return others_.empty() ? Amount{} : other(name);
  }
  void set(std::string_view name, Amount amount) {
    if (name == kCpu) {
      cpu_ = amount;
    } else if (name == kGpu) {
      gpu_ = amount;
    } else {
      set_other(name, amount);
    }
  }
  void clear() {
    cpu_ = gpu_ = {};
    others_.clear();
  }
  /// Whether it has anything but cpu and gpu.
  bool has_others() const { return !others_.empty(); }
  bool empty() const { return cpu_.is_zero() && gpu_.is_zero() && others_.empty(); }

  /// All that are not zero, in the order of the names, which live as long as this does.
  using Entries = boost::container::small_vector<std::pair<std::string_view, Amount>, 4>;
  Entries entries() const;

  /// True if each amount of `part` is at most ours.
  bool covers(const Resources& part) const {
    return cpu_ >= part.cpu_ && gpu_ >= part.gpu_ && (part.others_.empty() || covers_others(part));
  }
  /// How many times `part` is in ours, at most `limit`.
  std::size_t count(const Resources& part, std::size_t limit) const {
    auto most = static_cast<std::int64_t>(limit);
    if (!part.cpu_.is_zero()) most = std::min(most, cpu_ / part.cpu_);
    if (!part.gpu_.is_zero()) most = std::min(most, gpu_ / part.gpu_);
    for (const auto& [name, amount] : part.others_) most = std::min(most, other(name) / amount);
    return static_cast<std::size_t>(most);
  }
  /// By how much each amount of `part` exceeds ours; empty if covers(part).
  Resources missing(const Resources& part) const { return part.without(*this); }
  /// True if some name has an amount in both.
  bool overlaps(const Resources& other) const;
  /// Ours without `part`, and nothing where `part` has more than we do.
  Resources without(const Resources& part) const;

  Resources& operator+=(const Resources& more) {
    cpu_ = cpu_ + more.cpu_;
    gpu_ = gpu_ + more.gpu_;
    if (!more.others_.empty()) add_others(more);
    return *this;
  }
  /// Asserts covers(less).
  Resources& operator-=(const Resources& less) {
    cpu_ = cpu_ - less.cpu_;
    gpu_ = gpu_ - less.gpu_;
    if (!less.others_.empty()) subtract_others(less);
    return *this;
  }
  friend bool operator==(const Resources&, const Resources&) = default;
  friend std::strong_ordering operator<=>(const Resources&, const Resources&) = default;
  friend std::size_t hash_value(const Resources& resources) {
    auto hash = static_cast<std::size_t>(resources.cpu_.ticks());
    boost::hash_combine(hash, resources.gpu_.ticks());
    if (!resources.others_.empty()) resources.hash_others(hash);
    return hash;
  }

 private:
  Amount other(std::string_view name) const;
  void set_other(std::string_view name, Amount amount);
  bool covers_others(const Resources& part) const;
  void hash_others(std::size_t& hash) const;
  void add_others(const Resources& more);
  void subtract_others(const Resources& less);

  // What nearly every need names is compared and added without a look at a name.
  Amount cpu_;
  Amount gpu_;
  // By name, no zeros: a handful, so a vector beats a tree.
  std::vector<std::pair<std::string, Amount>> others_;
};

/// Each amount times `count`.
Resources times(const Resources& resources, std::int64_t count);

/// "cpu 2, memory 8 GB", in the order of the names; "nothing" if empty.
std::string to_string(const Resources& resources);

}  // namespace troupe::scheduler
