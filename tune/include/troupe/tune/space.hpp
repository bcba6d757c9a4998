#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/tune/detail/configuration_type.hpp>
#include <troupe/tune/detail/parts.hpp>
#include <troupe/tune/detail/written.hpp>
#include <troupe/tune/domain.hpp>

namespace troupe::tune {

/// One searched field, by name.
struct Dimension {
  std::string name;
  Domain domain;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};
/// What a searcher works on; Space<Config> below is how a program writes it down.
using SearchSpace = std::vector<Dimension>;

/// What a program's functions make of the fields that a searcher gave values to; see completion_of.
struct Completion {
  std::function<Configuration(const Configuration& drawn)> complete = {};  ///< empty: nothing
  std::vector<std::string> computed = {};                                  ///< fields
  std::vector<std::string> conditional = {};
  std::string conditions = {};  ///< in words, where they can be told; another search has others
};

namespace detail {
/// What values a field takes; empty: it can not be searched.
template <class Field>
constexpr std::string_view taken_by() {
  if constexpr (std::is_same_v<Field, bool>) return "a truth value";
  if constexpr (std::is_integral_v<Field>) return "an integer";
  if constexpr (std::is_floating_point_v<Field>) return "a number";
  if constexpr (kIsText<Field>) return "text";
  if constexpr (kIsOptional<Field>) return taken_by<typename Field::value_type>();
  if constexpr (!is_written<Field>()) return "";
  if constexpr (std::is_enum_v<Field>) return "the name of an enumerator";
  if constexpr (is_nested<Field>()) return "a struct, written as {lr: 0.1, layers: 2}";
  return "a list, written as [64, 32]";
}
template <class Field>
struct IsTaken : std::bool_constant<!taken_by<Field>().empty()> {};

/// Not constexpr on purpose: calling it is the compiler's message for a key that is no field of the
/// configuration.
inline void the_configuration_has_no_field_of_this_name() {}

inline void a_field_of_this_type_can_not_be_searched() {}

/// Some value of the kind that a function with this result computes; none: only a call tells.
template <class Result>
std::optional<Scalar> example_of() {
  using Value = std::remove_cvref_t<Result>;
  if constexpr (std::is_convertible_v<Value, std::string_view>) return Scalar("");
  if constexpr (std::is_arithmetic_v<Value>) return Scalar(Value{});
  if constexpr (is_written<Value>() && !kIsOptional<Value>) return as_scalar(Value{});
  return std::nullopt;
}
}  // namespace detail

/// A field of Config, an aggregate without base classes, C arrays and bit-fields: `"lr"`, refused
/// by the compiler where Config has no such field, or `&Config::lr`; of a struct in it
/// `"optimizer.lr"`. Or such a struct as a whole: `"optimizer"`.
template <class Config>
class Key {
 public:
  template <std::size_t length>
  consteval Key(const char (&name)[length]) {
    if constexpr (detail::kIsConfiguration<Config>) {
      constexpr auto names = detail::part_names<Config>();
      constexpr auto searchable = detail::of_parts<Config, detail::IsTaken>();
      while (index_ < names.size() && names[index_] != std::string_view(name, length - 1)) ++index_;
      if (index_ == names.size())
        detail::the_configuration_has_no_field_of_this_name();
      else if (!searchable[index_])
        detail::a_field_of_this_type_can_not_be_searched();
    }
  }

  template <class Field>
  Key(Field Config::*member) {
    static_assert(detail::IsTaken<Field>::value,
                  "troupe: a field of this type can not be searched: it is no number, truth value, "
                  "text or enum, nor "
                  "a std::vector, std::array, std::optional or plain struct of these");
    if constexpr (detail::kIsConfiguration<Config>) {
      const Config probe{};
      const void* wanted = &(probe.*member);
      detail::for_each_part(probe, [&]<class Part>(const Part& part, std::size_t index) {
        if (std::is_same_v<Part, Field> && static_cast<const void*>(&part) == wanted)
          index_ = index;
      });
    }
  }

  std::size_t index() const { return index_; }
  std::string_view name() const { return detail::part_names<Config>()[index_]; }

 private:
  std::size_t index_ = 0;
};

/// One field of the space, and what it holds in a trial:
///
///   {"lr", loguniform(1e-3, 1.0)}        a value of a domain; {&Config::lr, ...} names it too
///   {"epochs", 27}                       always this
///   {"warmup", [](const Config& c) { return c.steps / 10; }}    a function of the others
///   {"momentum", uniform(0.8, 1), [](const Config& c) { return c.optimizer == "sgd"; }}
///                                        searched under this condition; else it holds Options::config's value
///
/// The functions see Options::config with the fields that stand before theirs in the space. A function that reads a
/// field behind its own is refused before anything is launched. They must be pure: the search calls them for
/// configurations that no trial gets, and again when a run is resumed.
template <class Config>
struct Dim {
  using Condition = std::function<bool(const Config&)>;

  Dim(Key<Config> its_key, Domain its_domain, Condition condition = {})
      : key{its_key}, domain{std::move(its_domain)}, when{std::move(condition)} {}
  template <std::invocable<const Config&> Function>
  requires detail::Searchable<std::remove_cvref_t<std::invoke_result_t<Function, const Config&>>>
  Dim(Key<Config> its_key, Function function, Condition condition = {})
      : key{its_key},
        domain{0},
        when{std::move(condition)},
        computed{[function = std::move(function)](const Config& config) {
          return detail::as_scalar(function(config));
        }},
        returns{detail::example_of<std::invoke_result_t<Function, const Config&>>()} {}

  /// The compiler's message for what a field can not hold.
  template <class Other>
  requires(!std::convertible_to<Other, Domain> && !std::invocable<Other, const Config&>)
      Dim(Key<Config> its_key, const Other&, Condition = {})
      : key{its_key}, domain{0} {
    static_assert(std::is_void_v<Other>,
                  "troupe: a field of a space holds a domain, such as tune::uniform(0, 1), a "
                  "constant, or what a function of `const Config&` returns");
  }

  bool is_searched() const { return !computed; }

  Key<Config> key;
  Domain domain;  ///< of a searched field
  Condition when = {};
  std::function<Scalar(const Config&)> computed = {};
  std::optional<Scalar> returns = {};  ///< of a function: some value of the kind that it returns
};
template <class Config>
using Space = std::vector<Dim<Config>>;

namespace detail {
[[noreturn]] void refuse_value(std::string_view field, std::string_view takes, const Scalar& value);
[[noreturn]] void refuse_range(std::string_view field, std::string_view low, std::string_view high,
                               const Scalar& value);
[[noreturn]] void refuse_field(std::string_view field);
/// Of a real field, which would hold another number than this integer.
[[noreturn]] void refuse_inexact(std::string_view field, const Scalar& integer);
/// Of a function that computes `field`, which takes another kind than `returned`.
[[noreturn]] void refuse_returned(std::string_view field, std::string_view takes,
                                  const Scalar& returned);

/// `why`: what stands where in the text.
[[noreturn]] void refuse_text(std::string_view field, std::string_view takes, const Scalar& text,
                              std::string_view why);
/// Of two that are in the space, `inner` is a part of `outer`.
[[noreturn]] void refuse_inner(std::string_view inner, std::string_view outer);

/// Whether a field takes values of this one's kind.
template <class Field>
bool takes(const Scalar::Value& value) {
  if constexpr (std::is_same_v<Field, bool>) {
    return std::holds_alternative<bool>(value);
  } else if constexpr (std::is_integral_v<Field>) {
    return std::holds_alternative<std::int64_t>(value);
  } else if constexpr (std::is_floating_point_v<Field>) {
    return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
  } else if constexpr (kIsOptional<Field>) {
    return std::holds_alternative<std::string>(value) || takes<typename Field::value_type>(value);
  } else {
    return std::holds_alternative<std::string>(value);
  }
}

/// Stores `value`, or throws std::invalid_argument with the field's name. A real field takes
/// integers that it holds exactly; nothing else converts, and an integer has to fit its field.
template <class Field>
void assign_field(std::string_view name, Field& field, const Scalar& scalar) {
  const auto& value = scalar.value();
  if constexpr (std::is_same_v<Field, bool>) {
    if (auto* truth = std::get_if<bool>(&value))
      field = *truth;
    else
      refuse_value(name, taken_by<Field>(), scalar);
  } else if constexpr (std::is_integral_v<Field>) {
    auto* whole = std::get_if<std::int64_t>(&value);
    if (!whole) refuse_value(name, taken_by<Field>(), scalar);
    using Limits = std::numeric_limits<Field>;
    if (!fits<Field>(*whole))
      refuse_range(name, std::to_string(Limits::min()), std::to_string(Limits::max()), scalar);
    field = static_cast<Field>(*whole);
  } else if constexpr (std::is_floating_point_v<Field>) {
    if (auto* real = std::get_if<double>(&value))
      field = static_cast<Field>(*real);
    else if (auto* whole = std::get_if<std::int64_t>(&value)) {
      if (!holds_integer<Field>(*whole)) refuse_inexact(name, scalar);
      field = static_cast<Field>(*whole);
    } else
      refuse_value(name, taken_by<Field>(), scalar);
  } else if constexpr (kIsText<Field>) {
    if (auto* text = std::get_if<std::string>(&value))
      field = *text;
    else
      refuse_value(name, taken_by<Field>(), scalar);
  } else if constexpr (kIsOptional<Field>) {
    if (scalar == Scalar("none"))
      field.reset();
    else
      assign_field(name, field.emplace(), scalar);
  } else if constexpr (is_written<Field>()) {
    auto* text = std::get_if<std::string>(&value);
    if (!text) refuse_value(name, taken_by<Field>(), scalar);
    try {
      WrittenReader reader(*text);
      read_written(reader, field);
      reader.end();
    } catch (const std::invalid_argument& refused) {
      refuse_text(name, taken_by<Field>(), scalar, refused.what());
    }
  } else {
    refuse_field(name);
  }
}

template <class Config>
void assign(Config& config, std::size_t index, const Scalar& value) {
  for_each_part(config, [&](auto& part, std::size_t at) {
    if (at == index) assign_field(part_names<Config>()[index], part, value);
  });
}

/// Stores the values that a domain is written with, and of integers those beside its bounds: a field that takes them
/// takes all between them.
template <class Config>
void assign_ends(Config& config, std::size_t index, const Domain& domain) {
  for (const auto& value : domain.values()) assign(config, index, value);
  const auto last = domain.last_step();
  if (!last || *last == 0) return;
  assign(config, index, domain.at_step(1));
  assign(config, index, domain.at_step(*last - 1));
}

[[noreturn]] void refuse_twice(std::string_view field);
/// `value`: what the field holds, as text.
[[noreturn]] void refuse_outside(std::string_view field, const std::string& value,
                                 const Domain& domain);

template <class Field>
std::string text_of(const Field& field) {
  if constexpr (Searchable<Field>) return to_string(as_scalar(field));
  return "a value";
}

/// The value of the domain that a field holds: of a constant that one, whatever the field holds.
/// Throws std::invalid_argument, naming the field, where the domain has none like it.
template <class Field>
Scalar value_in(std::string_view name, const Domain& domain, const Field& field) {
  // Fields of other types are only copied, and need neither an operator== nor a default.
  if constexpr (taken_by<Field>().empty()) {
    refuse_field(name);
  } else {
    const auto holds = [&](const Scalar& value) {
      Field probe{};
      assign_field(name, probe, value);
      if constexpr (std::is_arithmetic_v<Field> || kIsText<Field>)
        return probe == field;
      else  // it needs no operator==
        return written(probe) == written(field);
    };
    if (domain.kind() == Domain::Kind::Constant) return domain.values().front();
    if constexpr (kIsOptional<Field>) {
      if (field) {
        if (as_scalar(*field) == Scalar("none")) refuse_none();
        return value_in(name, domain, *field);
      }
      if (domain.contains(Scalar("none"))) return Scalar("none");
      refuse_outside(name, "none", domain);
    }
    if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) {
      // Not by way of a double, which has not all of them.
      if (fits_64_bits(field)) {
        const Scalar whole(static_cast<std::int64_t>(field));
        if (domain.contains(whole)) return whole;
      }
    }
    if constexpr (std::is_arithmetic_v<Field>) {
      if (domain.range()) {
        const auto nearest = domain.nearest(static_cast<double>(field));
        if (holds(nearest)) return nearest;
        refuse_outside(name, text_of(field), domain);
      }
    }
    for (const auto& value : domain.values()) {
      if (holds(value)) return value;
    }
    refuse_outside(name, text_of(field), domain);
  }
}

/// Throws std::invalid_argument, naming field and configuration, where the function throws or returns
/// what its field can not take.
[[noreturn]] void refuse_computed(std::string_view field, const Configuration& so_far,
                                  std::string_view why);
/// Likewise for a condition that throws.
[[noreturn]] void refuse_condition(std::string_view field, const Configuration& so_far,
                                   std::string_view why);

/// Whether the field is part of a trial. `so_far`: what the trial has, for the error.
template <class Config>
bool holds(const Dim<Config>& dim, const Config& config, const Configuration& so_far) {
  try {
    return !dim.when || dim.when(config);
  } catch (const std::exception& thrown) {
    refuse_condition(dim.key.name(), so_far, thrown.what());
  }
}

template <class Config>
Scalar computed(const Dim<Config>& dim, const Config& config, const Configuration& so_far) {
  try {
    auto value = dim.computed(config);
    const auto* real = std::get_if<double>(&value.value());
    if (real && !std::isfinite(*real)) throw std::invalid_argument("it is not finite");
    auto probe = config;
    assign(probe, dim.key.index(), value);
    return value;
  } catch (const std::exception& thrown) {
    refuse_computed(dim.key.name(), so_far, thrown.what());
  }
}
}  // namespace detail

/// What of `config` the space searches, with some value of their domains for fields whose condition
/// does not hold. Throws std::invalid_argument, naming the field, where it holds a value that is not
/// in its domain.
template <class Config>
Configuration searched_part(const Space<Config>& space, const Config& config) {
  Configuration part;
  for (const auto& dim : space) {
    if (!dim.is_searched()) continue;
    const auto name = dim.key.name();
    if (!detail::holds(dim, config, part)) {
      const auto range = dim.domain.range();
      part.emplace_back(name, range ? dim.domain.nearest(std::isfinite(range->low) ? range->low : 0)
                                    : dim.domain.values().front());
      continue;
    }
    detail::for_each_part(config, [&](const auto& field, std::size_t at) {
      if (at == dim.key.index()) part.emplace_back(name, detail::value_in(name, dim.domain, field));
    });
  }
  return part;
}

namespace detail {
/// Throws where the field can not take what its function returns.
template <class Config>
void check_returned(const Dim<Config>& dim) {
  if (!dim.returns) return;
  const Config probe{};
  for_each_part(probe, [&]<class Field>(const Field&, std::size_t at) {
    if (at != dim.key.index() || takes<Field>(dim.returns->value())) return;
    refuse_returned(dim.key.name(), taken_by<Field>(), *dim.returns);
  });
}

/// Throws where one of the two is a part of the other.
template <class Config>
void check_apart(const Dim<Config>& dim, const Dim<Config>& other) {
  const auto refuse_part = [](std::string_view inner, std::string_view outer) {
    if (inner.starts_with(outer) && inner.substr(outer.size()).starts_with('.'))
      refuse_inner(inner, outer);
  };
  refuse_part(dim.key.name(), other.key.name());
  refuse_part(other.key.name(), dim.key.name());
}
}  // namespace detail

/// The space by names. Throws std::invalid_argument, naming the field, where one stands twice or
/// can not take every value of its domain or the kind that its function returns: before anything is
/// launched.
template <class Config>
SearchSpace checked(const Space<Config>& space) {
  SearchSpace named;
  Config probe{};
  for (auto dim = space.begin(); dim != space.end(); ++dim) {
    for (auto other = space.begin(); other != dim; ++other) {
      if (other->key.index() == dim->key.index()) detail::refuse_twice(dim->key.name());
      detail::check_apart(*other, *dim);
    }
    detail::check_returned(*dim);
    if (!dim->is_searched()) continue;
    detail::assign_ends(probe, dim->key.index(), dim->domain);
    named.push_back({std::string(dim->key.name()), dim->domain});
  }
  return named;
}

/// Of a space with conditions or functions: makes of a value for each searched field what a trial is
/// to run with. Fields whose condition does not hold are left out, and those that are computed stand
/// at their place. Empty: the space has neither.
template <class Config>
Completion completion_of(const Space<Config>& space, const Config& base) {
  Completion completion;
  for (const auto& dim : space) {
    if (dim.computed) completion.computed.emplace_back(dim.key.name());
    if (dim.when) completion.conditional.emplace_back(dim.key.name());
  }
  if (completion.computed.empty() && completion.conditional.empty()) return completion;
  completion.complete = [space, base](const Configuration& drawn) {
    auto config = base;
    Configuration completed;
    for (const auto& dim : space) {
      if (!detail::holds(dim, config, completed)) continue;
      const auto name = dim.key.name();
      const auto is_this = [&](const auto& field) { return field.first == name; };
      const auto at = std::ranges::find_if(drawn, is_this);
      if (dim.is_searched() && at == drawn.end()) continue;
      auto value = dim.is_searched() ? at->second : detail::computed(dim, config, completed);
      detail::assign(config, dim.key.index(), value);
      completed.emplace_back(name, std::move(value));
    }
    return completed;
  };
  return completion;
}

/// Throws std::invalid_argument where a field is not Config's, or can not take every value of its
/// domain.
template <class Config>
void check_fields(const SearchSpace& fields) {
  constexpr auto names = detail::part_names<Config>();
  Config probe{};
  for (const auto& [name, domain] : fields) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      throw std::invalid_argument("the configuration has no field '" + name + "'");
    detail::assign_ends(probe, static_cast<std::size_t>(at - names.begin()), domain);
  }
}

/// `base` with the configuration's values in their fields. Throws std::invalid_argument for a name
/// or a kind that is not Config's.
template <class Config>
Config configured(Config base, const Configuration& configuration) {
  constexpr auto names = detail::part_names<Config>();
  for (const auto& [name, value] : configuration) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      throw std::invalid_argument("the configuration has no field '" + name + "'");
    detail::assign(base, static_cast<std::size_t>(at - names.begin()), value);
  }
  return base;
}

}  // namespace troupe::tune
