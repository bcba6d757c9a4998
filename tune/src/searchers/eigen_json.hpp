#pragma once

#include <stdexcept>

#include <Eigen/Dense>

#include "text/json.hpp"

namespace troupe::tune {

inline Json to_json(const Eigen::VectorXd& vector) {
  auto json = Json::array();
  for (const double number : vector) json.push_back(to_json(number));
  return json;
}

/// Throws std::invalid_argument where the length or a number's type is another.
inline Eigen::VectorXd vector_from(const Json& json, Eigen::Index size) {
  if (!json.is_array() || std::ssize(json) != size)
    throw std::invalid_argument("a saved search has a point of another length");
  Eigen::VectorXd vector(size);
  for (Eigen::Index i = 0; i < size; ++i)
    vector[i] = number_from(json.at(static_cast<std::size_t>(i)));
  return vector;
}

}  // namespace troupe::tune
