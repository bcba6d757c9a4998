#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <troupe/tune.hpp>
#include <troupe/tune/detail/sweep_keys.hpp>

#include "sweep/fields.hpp"
#include "sweep/file/search_tables.hpp"

namespace troupe::launch {
namespace {

using tune::Scalar;

constexpr const char* kDomains =
    "is a value, or a table with one of uniform, loguniform, integer, log_integer, normal, choice, "
    "ordinal and grid: { uniform = [0.0, 1.0] }";

double real(TomlTable& field, const std::string& key, const Scalar& value) {
  if (const auto* number = std::get_if<double>(&value.value())) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&value.value()))
    return static_cast<double>(*whole);
  field.refuse(key, "has a bound that is no number");
}

std::int64_t whole(TomlTable& field, const std::string& key, const Scalar& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.value())) return *number;
  field.refuse(key, "has a bound that is no integer");
}

/// { uniform = [0, 1], step = 0.1 }
tune::Domain range_of(TomlTable& field, const std::string& kind,
                      const std::vector<Scalar>& bounds) {
  if (bounds.size() != 2) field.refuse(kind, "has two values: [low, high]");
  const auto step = field.scalar("step");
  if (kind == "integer" || kind == "log_integer") {
    const auto low = whole(field, kind, bounds[0]), high = whole(field, kind, bounds[1]);
    if (kind == "log_integer" && step) field.refuse("step", "is of the other kinds of ranges");
    if (kind == "log_integer") return tune::log_integer(low, high);
    return step ? tune::integer(low, high, whole(field, "step", *step)) : tune::integer(low, high);
  }
  const auto low = real(field, kind, bounds[0]), high = real(field, kind, bounds[1]);
  if (!step) {
    if (kind == "normal") return tune::normal(low, high);
    return kind == "uniform" ? tune::uniform(low, high) : tune::loguniform(low, high);
  }
  const auto each = real(field, "step", *step);
  if (kind == "normal") return tune::normal(low, high, each);
  return kind == "uniform" ? tune::uniform(low, high, each) : tune::loguniform(low, high, each);
}

/// Texts that a program is to be given.
void check_texts(const TomlTable& space, const std::string& name, const tune::Domain& domain) {
  for (const auto& value : domain.values()) {
    const auto* text = std::get_if<std::string>(&value.value());
    if (text != nullptr && has_zero(*text)) space.refuse(name, kZero);
  }
}

/// Names that stand for something else in the texts of a sweep.
void check_name(const TomlTable& space, const std::string& name) {
  if (name.empty()) space.refuse(name, "is no name of a field: give it one");
  if (has_zero(name)) space.refuse(name, kZero);
  for (const auto& path : with_paths({}, "")) {
    if (name == path.name)
      space.refuse(name, fmt::format("is no name of a field, as {{{}}} is the path that each "
                                     "trial has for it: give the field another",
                                     name));
  }
}

/// A field that another one's `when` names, and with what value.
struct Condition {
  std::string field;
  std::vector<Scalar> values;
};

/// { optimizer = "sgd" }, { layers = [2, 3] }: of fields that stand before this one.
std::vector<Condition> conditions_of(TomlTable& field, const tune::SearchSpace& before) {
  std::vector<Condition> conditions;
  auto when = field.table("when");
  if (!when) return conditions;
  for (const auto& name : when->keys()) {
    const auto other = std::ranges::find(before, name, &tune::Dimension::name);
    if (other == before.end())
      when->refuse(name,
                   "is no field that stands before this one: move that one up, or mend its name");
    auto values = when->is_list(name) ? when->scalars(name) : std::nullopt;
    if (const auto value = when->scalar(name)) values = {*value};
    if (!values || values->empty())
      when->refuse(name, "is a value of that field, or a list of them: when = { layers = [2, 3] }");
    for (const auto& value : *values) {
      if (!other->domain.contains(value))
        when->refuse(name,
                     fmt::format("is never {}: its domain has no such value", to_string(value)));
    }
    conditions.push_back({name, *std::move(values)});
  }
  if (conditions.empty()) field.refuse("when", "names no field: when = { optimizer = \"sgd\" }");
  return conditions;
}

struct SpaceField {
  tune::Domain domain;
  std::vector<Condition> when = {};
};

SpaceField field_of(TomlTable& space, const std::string& name, const tune::SearchSpace& before) {
  if (const auto value = space.scalar(name)) return {tune::Domain(*value)};
  if (space.is_list(name)) space.refuse(name, kDomains);
  auto field = space.table(name);
  if (!field) space.refuse(name, kDomains);
  auto when = conditions_of(*field, before);
  std::optional<tune::Domain> domain;
  const auto alone = [&](const char* kind) {
    if (domain) field->refuse(kind, "is one kind too many: a field has one");
  };
  try {
    for (const auto* kind : {"uniform", "loguniform", "integer", "log_integer", "normal"}) {
      if (const auto bounds = field->scalars(kind)) {
        alone(kind);
        domain = range_of(*field, kind, *bounds);
      }
    }
    for (const auto* kind : {"choice", "ordinal", "grid"}) {
      if (const auto values = field->scalars(kind)) {
        alone(kind);
        domain = kind == std::string("choice")    ? tune::choice(*values)
                 : kind == std::string("ordinal") ? tune::ordinal(*values)
                                                  : tune::grid(*values);
      }
    }
  } catch (const std::invalid_argument& refused) {
    space.refuse(name, "cannot be: " + tune::detail::with_sweep_keys(refused.what()));
  }
  field->finish();
  if (!domain) space.refuse(name, kDomains);
  return {*std::move(domain), std::move(when)};
}

const Scalar* value_of(const tune::Configuration& config, const std::string& name) {
  const auto at = std::ranges::find(config, name, &tune::Configuration::value_type::first);
  return at == config.end() ? nullptr : &at->second;
}

/// A field that is left out has none of the values.
bool hold(const std::vector<Condition>& conditions, const tune::Configuration& so_far) {
  return std::ranges::all_of(conditions, [&](const Condition& condition) {
    const auto* value = value_of(so_far, condition.field);
    return value != nullptr && std::ranges::count(condition.values, *value) > 0;
  });
}

using Conditions = std::map<std::string, std::vector<Condition>>;  // by field

/// "momentum when optimizer is sgd or lion", for each field.
std::string in_words(const Conditions& conditions) {
  std::vector<std::string> fields;
  for (const auto& [name, all] : conditions) {
    std::vector<std::string> words;
    for (const auto& condition : all) {
      std::vector<std::string> values;
      for (const auto& value : condition.values) values.push_back(to_string(value));
      words.push_back(fmt::format("{} is {}", condition.field, fmt::join(values, " or ")));
    }
    fields.push_back(fmt::format("{} when {}", name, fmt::join(words, " and ")));
  }
  return fmt::format("{}", fmt::join(fields, "; "));
}

/// What a trial with these values is to run with, in the order of the space.
tune::Configuration without_left_out(const tune::SearchSpace& space, const Conditions& conditions,
                                     const tune::Configuration& drawn) {
  tune::Configuration config;
  for (const auto& [name, domain] : space) {
    const auto* value = value_of(drawn, name);
    const auto when = conditions.find(name);
    if (value == nullptr || (when != conditions.end() && !hold(when->second, config))) continue;
    config.emplace_back(name, *value);
  }
  return config;
}

/// Of an entry of [first]: what the table says, in the domain.
Scalar first_value(const TomlTable& file, const std::string& name, const tune::Domain& domain,
                   const std::optional<Scalar>& given) {
  using Kind = tune::Domain::Kind;
  if (domain.kind() == Kind::Constant) return domain.values().front();
  if (!given) file.refuse("first", fmt::format("has an entry without {}", name));
  auto value = *given;
  const bool is_real =
      domain.range() && domain.kind() != Kind::Integer && domain.kind() != Kind::LogInteger;
  if (const auto* whole = std::get_if<std::int64_t>(&value.value()); whole && is_real)
    value = static_cast<double>(*whole);
  if (!domain.contains(value))
    file.refuse("first",
                fmt::format("has {} = {}, which its domain has not", name, to_string(value)));
  return value;
}

/// What searchers are told of a field that no trial with this configuration has.
Scalar any_of(const tune::Domain& domain) {
  const auto range = domain.range();
  if (!range) return domain.values().front();
  return domain.nearest(std::isfinite(range->low) ? range->low : 0);
}

/// [first]: the fields that are given, in the order of the space; the others as their domain's first
/// value would be another guess, so all have to be there, but for those that the trial has not.
std::vector<tune::Configuration> first_of(TomlTable& file, const tune::SearchSpace& space,
                                          const Conditions& conditions) {
  std::vector<tune::Configuration> first;
  for (auto& table : file.tables("first")) {
    tune::Configuration config, used;
    for (const auto& [name, domain] : space) {
      const auto given = table.scalar(name);
      const auto when = conditions.find(name);
      const bool is_used = when == conditions.end() || hold(when->second, used);
      if (!is_used && given)
        file.refuse("first", fmt::format("has {}, whose condition does not hold there", name));
      config.emplace_back(name, is_used ? first_value(file, name, domain, given) : any_of(domain));
      if (is_used) used.push_back(config.back());
    }
    table.finish();
    first.push_back(std::move(config));
  }
  return first;
}

}  // namespace

void read_space(TomlTable& file, tune::detail::Plan& plan) {
  auto table = file.table("space");
  if (!table) file.refuse_missing("space", "is missing: it says what is searched, [space]");
  Conditions conditions;
  for (const auto& name : table->keys()) {
    check_name(*table, name);
    auto field = field_of(*table, name, plan.space);
    plan.space.push_back({name, std::move(field.domain)});
    check_texts(*table, name, plan.space.back().domain);
    if (field.when.empty()) continue;
    plan.completion.conditional.push_back(name);
    conditions[name] = std::move(field.when);
  }
  if (plan.space.empty()) file.refuse("space", "has no field: lr = { loguniform = [1e-4, 1.0] }");
  plan.first = first_of(file, plan.space, conditions);
  if (conditions.empty()) return;
  plan.completion.conditions = in_words(conditions);
  plan.completion.complete = [space = plan.space, conditions](const tune::Configuration& drawn) {
    return without_left_out(space, conditions, drawn);
  };
}

}  // namespace troupe::launch
