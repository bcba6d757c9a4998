#include <troupe/tune/detail/field_order.hpp>
#include <troupe/tune/space.hpp>

#include <fmt/format.h>

namespace troupe::tune::detail {
namespace {

/// What to write in place of a value of another kind than a field takes.
std::string_view advice(std::string_view takes, const Scalar& value) {
  const bool is_text = std::holds_alternative<std::string>(value.value());
  if (takes == taken_by<bool>()) return "; tune::choice({false, true}) has both";
  if (takes == taken_by<std::string>()) return "; text is written in quotes";
  if (is_text) return "; a number has no quotes, and the lack of one is std::optional<int>{}";
  if (takes == taken_by<double>()) return "";
  return "; give it values of the field's own type";
}

}  // namespace

void refuse_value(std::string_view field, std::string_view takes, const Scalar& value) {
  throw std::invalid_argument(fmt::format("field '{}' takes {}, not the {} {}{}", field, takes,
                                          kind_of(value), to_string(value), advice(takes, value)));
}

void refuse_no_integer(std::string_view field, const Scalar& value) {
  if (!std::holds_alternative<double>(value.value()))
    refuse_value(field, taken_by<std::int64_t>(), value);
  throw std::invalid_argument(
      fmt::format("field '{}' takes an integer, not the real number {}; tune::integer(low, high) "
                  "is a domain of "
                  "integers",
                  field, to_string(value)));
}

void refuse_range(std::string_view field, std::string_view low, std::string_view high,
                  const Scalar& value) {
  throw std::invalid_argument(
      fmt::format("field '{}' takes {} to {}, not {}", field, low, high, to_string(value)));
}

void refuse_field(std::string_view field) {
  throw std::invalid_argument(fmt::format(
      "field '{}' can not be searched: it is no number, truth value, text or enum, nor a "
      "std::vector, std::array, std::optional or plain struct of these",
      field));
}

void refuse_text(std::string_view field, std::string_view takes, const Scalar& text,
                 std::string_view why) {
  throw std::invalid_argument(
      fmt::format("field '{}' takes {}, not {}: {}", field, takes, to_string(text), why));
}

void refuse_inner(std::string_view inner, std::string_view outer) {
  throw std::invalid_argument(fmt::format(
      "field '{}' is a part of '{}', which stands in the search space too: leave one of "
      "them out",
      inner, outer));
}

void refuse_inexact(std::string_view field, const Scalar& integer) {
  throw std::invalid_argument(fmt::format(
      "field '{}' is a real number, which would round the integer {}: make it a std::int64_t",
      field, to_string(integer)));
}

void refuse_returned(std::string_view field, std::string_view takes, const Scalar& returned) {
  const auto kind = kind_of(returned);
  throw std::invalid_argument(
      fmt::format("tune: field '{}' takes {}, and the function that computes it returns {} {}: let "
                  "it return {}{}",
                  field, takes, kind.starts_with('i') ? "an" : "a", kind, takes,
                  kind == "text" ? "" : ", as by a static_cast"));
}

void refuse_outside(std::string_view field, const std::string& value, const Domain& domain) {
  throw std::invalid_argument(
      fmt::format("field '{}' holds {}, which is not in {}", field, value, to_string(domain)));
}

void refuse_twice(std::string_view field) {
  throw std::invalid_argument(fmt::format("field '{}' stands twice in the search space", field));
}

void refuse_order(std::string_view field, std::string_view later) {
  throw std::invalid_argument(
      fmt::format("tune: the condition or function of field '{}' looks at field '{}', which stands "
                  "behind it in "
                  ".space and has no value by then; put '{}' before '{}'",
                  field, later, later, field));
}

void refuse_cycle(const std::vector<std::string_view>& fields) {
  std::string looks;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    looks += fmt::format("{}'{}' looks at '{}'", i == 0 ? "" : ", ", fields[i],
                         fields[(i + 1) % fields.size()]);
  }
  throw std::invalid_argument(
      fmt::format("tune: no order of .space has each field behind those that its condition or "
                  "function looks at: {}; leave one of these conditions or functions out",
                  looks));
}

namespace {

/// Behind "cannot be used".
std::string with_known(const Configuration& so_far) {
  return so_far.empty() ? std::string() : " with " + to_string(so_far);
}

}  // namespace

void refuse_computed(std::string_view field, const Configuration& so_far, std::string_view why) {
  throw std::invalid_argument(
      fmt::format("tune: the function that computes field '{}' cannot be used{}: {}", field,
                  with_known(so_far), why));
}

void refuse_condition(std::string_view field, const Configuration& so_far, std::string_view why) {
  throw std::invalid_argument(fmt::format("tune: the condition of field '{}' cannot be used{}: {}",
                                          field, with_known(so_far), why));
}

}  // namespace troupe::tune::detail
