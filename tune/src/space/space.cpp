#include <troupe/tune/space.hpp>

#include <fmt/format.h>

namespace troupe::tune::detail {

void refuse_value(std::string_view field, std::string_view takes, const Scalar& value) {
  throw std::invalid_argument(fmt::format("field '{}' takes {}, not the {} {}", field, takes,
                                          kind_of(value), to_string(value)));
}

void refuse_range(std::string_view field, std::string_view low, std::string_view high,
                  const Scalar& value) {
  throw std::invalid_argument(
      fmt::format("field '{}' takes {} to {}, not {}", field, low, high, to_string(value)));
}

void refuse_field(std::string_view field) {
  throw std::invalid_argument(fmt::format(
      "field '{}' can not be searched: it is no number, truth value or std::string", field));
}

void refuse_outside(std::string_view field, const Domain& domain) {
  throw std::invalid_argument(
      fmt::format("field '{}' holds a value that is not in {}", field, to_string(domain)));
}

void refuse_twice(std::string_view field) {
  throw std::invalid_argument(fmt::format("field '{}' stands twice in the search space", field));
}

void refuse_computed(std::string_view field, const Configuration& so_far, std::string_view why) {
  throw std::invalid_argument(
      fmt::format("tune: the function that computes field '{}' cannot be used with {}: {}", field,
                  so_far.empty() ? "no field before it" : to_string(so_far), why));
}

}  // namespace troupe::tune::detail
