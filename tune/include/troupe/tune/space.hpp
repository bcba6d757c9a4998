#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/tune/detail/assign.hpp>
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

template <class Config>
class Key;

namespace detail {
/// Not constexpr on purpose: calling it is the compiler's message for a key that is no field of the
/// configuration, and the message has the fields that there are.
template <auto fields>
void the_configuration_has_no_field_of_this_name() {}

inline void a_field_of_this_type_can_not_be_searched() {}

/// A function of the configuration whose result a field can hold.
template <class Function, class Config>
concept Computes = std::invocable<Function, const Config&> &&
    Searchable<std::remove_cvref_t<std::invoke_result_t<Function, const Config&>>>;

/// What a condition may return: no text, whose pointer is always true.
template <class Answer>
concept YesOrNo =
    std::convertible_to<Answer, bool> && !std::convertible_to<Answer, std::string_view>;
/// Or nullptr, which is no condition.
template <class Function, class Config>
concept Decides = std::is_null_pointer_v<Function> ||
    (std::invocable<Function&, const Config&>&&
         YesOrNo<std::decay_t<std::invoke_result_t<Function&, const Config&>>>);

/// Whether it names a field as a Key does, though maybe of another type than Config.
template <class Name, class Config>
concept Names = std::is_array_v<Name> || std::is_member_object_pointer_v<Name> ||
    std::convertible_to<const Name&, Key<Config>>;

/// In place of a value that the compiler has refused.
template <class Value>
Value refused() {
  std::abort();
}

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
        detail::the_configuration_has_no_field_of_this_name<detail::printed_parts<Config>()>();
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
  template <class Function>
  requires detail::Computes<Function, Config> Dim(Key<Config> its_key, Function function,
                                                  Condition condition = {})
      : key{its_key},
        domain{0},
        when{std::move(condition)},
        computed{[function = std::move(function)](const Config& config) {
          return detail::as_scalar(std::invoke(function, config));
        }},
        returns{detail::example_of<std::invoke_result_t<Function, const Config&>>()} {}

  /// The compiler's message for what a field can not hold.
  template <class Other>
  requires(!std::convertible_to<Other, Domain> && !detail::Computes<Other, Config>)
      Dim(Key<Config> its_key, const Other&, Condition = {})
      : key{its_key}, domain{0} {
    static_assert(
        std::is_void_v<Other> || !detail::kIsConfiguration<Config>,
        "troupe: a field of a space holds a domain, such as tune::uniform(0, 1), a "
        "constant, or what a function of `const Config&` returns: a number, a truth "
        "value, text, an enumerator, or a std::vector, std::array, std::optional or plain "
        "struct of these");
  }

  /// The compiler's messages for what is no condition, no domain and no name of a field.
  template <class Holds, class When>
  requires(!detail::Decides<When, Config>) Dim(Key<Config>, const Holds&, const When&)
      : Dim{detail::refused<Dim>()} {
    static_assert(std::is_void_v<When>,
                  "troupe: behind the domain of a field stands its condition, a function of `const "
                  "Config&` that returns a bool, and no text");
  }
  template <bool is_used = true>
  Dim(Key<Config>, const detail::Braces&, Condition = {}) : Dim{detail::refused<Dim>()} {
    static_assert(!is_used,
                  "troupe: braces are no domain: write tune::choice({64, 128}) for one of these "
                  "values, or tune::uniform(0, 1); a constant list is a std::vector{64, 128}; a "
                  "field of a struct in the configuration is named \"optimizer.lr\"");
  }
  template <class Name>
  requires detail::Names<Name, Config> Dim(const Name&) : Dim{detail::refused<Dim>()} {
    static_assert(
        std::is_void_v<Name>,
        "troupe: behind the name of a field stands what it holds: {\"lr\", tune::uniform(0, 1)}");
  }
  template <std::same_as<Domain> Holds>
  Dim(const Holds&) : Dim{detail::refused<Dim>()} {
    static_assert(std::is_void_v<Holds>,
                  "troupe: a field of a space begins with its name: {\"lr\", tune::uniform(0, 1)}");
  }
  template <class Field, class Other, class... Rest>
  requires(!std::same_as<Other, Config>) Dim(Field Other::*, const Rest&...)
      : Dim{detail::refused<Dim>()} {
    static_assert(
        std::is_void_v<Other>,
        "troupe: this is a field of another struct than the space's configuration; a field "
        "of a struct in the configuration is named \"optimizer.lr\"");
  }
  template <class Name, class... Rest>
  requires(!detail::Names<Name, Config> && !std::same_as<Name, Dim> && sizeof...(Rest) > 0)
      Dim(const Name&, const Rest&...)
      : Dim{detail::refused<Dim>()} {
    constexpr bool is_text = std::is_convertible_v<Name, std::string_view>;
    static_assert(
        !is_text,
        "troupe: the name of a field is a literal, \"lr\", which the compiler looks up, "
        "or &Config::lr; a sweep that reads names as it runs is a file for `troupe tune`");
    static_assert(is_text,
                  "troupe: a field of a space begins with its name: {\"lr\", tune::uniform(0, 1)}");
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
[[noreturn]] void refuse_twice(std::string_view field);
/// Of two that are in the space, `inner` is a part of `outer`.
[[noreturn]] void refuse_inner(std::string_view inner, std::string_view outer);
/// Of a function that computes `field`, which takes another kind than `returned`.
[[noreturn]] void refuse_returned(std::string_view field, std::string_view takes,
                                  const Scalar& returned);
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
/// As files have it: a number that is not finite is its text.
inline Scalar in_files(const Scalar& scalar) {
  const auto* real = std::get_if<double>(&scalar.value());
  return real && !std::isfinite(*real) ? Scalar(to_string(*real)) : scalar;
}
/// What in_files() was made of, if that was a number.
inline Scalar number_from_files(const Scalar& scalar) {
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  if (scalar == Scalar("inf")) return kInfinity;
  if (scalar == Scalar("-inf")) return -kInfinity;
  return scalar == Scalar("nan") ? Scalar(std::numeric_limits<double>::quiet_NaN()) : scalar;
}

/// Stores the value where the part takes it. -> it does.
template <class Config>
bool try_assign(Config& config, std::size_t index, const Scalar& value) {
  try {
    auto changed = config;
    assign(changed, index, value);
    config = std::move(changed);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}
}  // namespace detail

/// What every trial has of `config`: the fields that the space never gives a value, and those with a
/// condition, which have this one where it does not hold. Without fields whose type can not be written.
template <class Config>
Configuration unsearched_part(const Space<Config>& space, const Config& config) {
  constexpr auto names = detail::field_names<Config>();
  const auto is_set = [&](std::string_view name) {
    return std::ranges::any_of(space, [&](const Dim<Config>& dim) {
      const auto key = dim.key.name();
      const bool is_inside = name.starts_with(key) && name.substr(key.size()).starts_with('.');
      return !dim.when && (name == key || is_inside);
    });
  };
  Configuration part;
  detail::for_each_field(config, [&]<class Field>(const Field& field, std::size_t at) {
    if constexpr (detail::Searchable<Field>) {
      if (is_set(names[at])) return;
      try {
        part.emplace_back(names[at], detail::in_files(detail::as_scalar(field)));
      } catch (const std::invalid_argument&) {
        // No Scalar has its value: an integer above 2^63, an optional with the text "none".
      }
    }
  });
  return part;
}

/// `config` with the values that it can take; those of other fields, and of other kinds, are left out.
template <class Config>
Config with_unsearched(Config config, const Configuration& values) {
  constexpr auto names = detail::part_names<Config>();
  for (const auto& [name, value] : values) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) continue;
    const auto index = static_cast<std::size_t>(at - names.begin());
    if (!detail::try_assign(config, index, value))
      detail::try_assign(config, index, detail::number_from_files(value));
  }
  return config;
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
