#pragma once

#include <cmath>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/random.hpp>
#include <troupe/tune/space.hpp>

/// Finds conditions and functions of a space that look at fields which have no value yet. What a
/// function looks at can not be asked, so it is tried: where its answer changes with a field, it
/// looks at that one. One that looks at a field in rare configurations only may be missed.
namespace troupe::tune::detail {

[[noreturn]] void refuse_order(std::string_view field, std::string_view later);
/// Each looks at the next one, the last at the first.
[[noreturn]] void refuse_cycle(const std::vector<std::string_view>& fields);

template <class Config>
class FieldOrder {
 public:
  FieldOrder(const Space<Config>& space, const Config& base) : space_{space}, base_{base} {}

  /// Throws std::invalid_argument, naming the fields.
  void check() const {
    for (std::size_t field = 0; field < space_.size(); ++field) {
      if (!is_asked(field)) continue;
      for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
        if (const auto later = looked_at_behind(field, draw)) refuse(field, *later);
      }
    }
  }

 private:
  static constexpr std::uint64_t kDraws = 64;

  bool is_asked(std::size_t field) const { return space_[field].when || space_[field].computed; }

  /// What the condition and the function say; none: they throw.
  std::optional<std::string> answer(std::size_t field, const Config& config) const {
    const auto& dim = space_[field];
    try {
      if (dim.when && !dim.when(config)) return "left out";
      return dim.computed ? to_string(dim.computed(config)) : "searched";
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  /// The first two draws are the ends of all domains.
  Scalar drawn(const Dim<Config>& dim, std::uint64_t draw) const {
    const auto& domain = dim.domain;
    const auto range = domain.range();
    if (draw < 2 && !range) return draw == 0 ? domain.values().front() : domain.values().back();
    if (const auto last = domain.last_step(); last && draw < 2)
      return domain.at_step(draw == 0 ? 0 : *last);
    if (draw < 2 && std::isfinite(range->low))
      return domain.nearest(draw == 0 ? range->low : range->high);
    Random random(0, draw, dim.key.name());
    return domain.sample(random);
  }

  void set(Config& config, std::size_t field, std::uint64_t draw) const {
    const auto& dim = space_[field];
    try {
      assign(config, dim.key.index(), dim.is_searched() ? drawn(dim, draw) : dim.computed(config));
    } catch (const std::exception&) {
      // It keeps the value that it has.
    }
  }

  /// A field behind this one that changes what its condition and its function say.
  std::optional<std::size_t> looked_at_behind(std::size_t field, std::uint64_t draw) const {
    auto config = base_;
    for (std::size_t before = 0; before < field; ++before) {
      if (answer(before, config) != "left out") set(config, before, draw);
    }
    const auto said = answer(field, config);
    if (!said || answer(field, config) != said) return std::nullopt;  // or it is not pure
    for (auto later = field + 1; later < space_.size(); ++later) {
      set(config, later, draw);
      const auto now = answer(field, config);
      if (now && now != said) return later;
    }
    return std::nullopt;
  }

  bool looks_at(std::size_t field, std::size_t other) const {
    if (!is_asked(field) || field == other) return false;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      auto config = base_;
      for (std::size_t each = 0; each < space_.size(); ++each) {
        if (each != other && each != field) set(config, each, draw);
      }
      const auto said = answer(field, config);
      set(config, other, draw);
      const auto now = answer(field, config);
      if (said && now && said != now) return true;
    }
    return false;
  }

  /// Appends the fields from `field` to one that looks at `wanted`. -> there is such a way.
  bool leads_to(std::size_t field, std::size_t wanted, std::vector<std::size_t>& way,
                std::vector<bool>& seen) const {
    seen[field] = true;
    way.push_back(field);
    if (looks_at(field, wanted)) return true;
    for (std::size_t next = 0; next < space_.size(); ++next) {
      if (!seen[next] && looks_at(field, next) && leads_to(next, wanted, way, seen)) return true;
    }
    way.pop_back();
    return false;
  }

  [[noreturn]] void refuse(std::size_t field, std::size_t later) const {
    std::vector<std::size_t> way{field};
    std::vector<bool> seen(space_.size());
    if (!leads_to(later, field, way, seen))
      refuse_order(space_[field].key.name(), space_[later].key.name());
    std::vector<std::string_view> names;
    for (const auto each : way) names.push_back(space_[each].key.name());
    refuse_cycle(names);
  }

  const Space<Config>& space_;
  const Config& base_;
};

}  // namespace troupe::tune::detail
