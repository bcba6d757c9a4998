#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/decision.hpp>
#include <troupe/tune/space.hpp>

#include "space/places.hpp"

namespace troupe::tune {

/// One searched field as a coordinate in [0, 1], on which each value of its domain is equally
/// likely. A real number is a point (in a log range, on the scale of logarithms; of a normal
/// distribution, the part of it that is lower). One of n integers, steps, ordinals or categories is
/// a cell of width 1/n, whose middle stands for it; an integer k of a log range is the cell from
/// log(k - 1/2) to log(k + 1/2), in which log(k) stands for it. An ordinal counts as the integer
/// that is its place. The cell of a value that is very high up in a range of more than 2^50 values
/// is that of a block of neighbours (Places). A value type.
class Axis {
 public:
  enum class Kind : std::uint8_t { Real, Integer, Category };

  /// Throws std::invalid_argument for a domain with a single value, which has no coordinate.
  explicit Axis(Dimension field);

  const std::string& name() const { return field_.name; }
  const Domain& domain() const { return field_.domain; }
  Kind kind() const { return kind_; }
  bool is_number() const { return kind_ != Kind::Category; }
  /// Values that there are; 0 for real numbers. A double, as there may be 2^64 integers.
  double values() const { return values_; }

  /// The value at a coordinate; one outside of [0, 1] is moved to the nearer end. Of a block it is one that `random`
  /// draws.
  Scalar value_at(double coordinate, Random random = Random(0)) const;
  /// Throws std::invalid_argument, naming the field, for what is not in the domain.
  double coordinate_of(const Scalar& value) const;
  /// The coordinate that stands for the value at a coordinate: of a real number the same one.
  double settled(double coordinate) const;
  /// The cell of the value at a coordinate; of a real number both ends are the coordinate.
  std::pair<double, double> cell(double coordinate) const;
  /// What stands for the values of the next cell above or below; none at the end. Asserts Kind::Integer.
  std::optional<double> neighbour(double coordinate, bool is_above) const;

  /// The number, from 0, of the category at a coordinate. Asserts Kind::Category.
  std::size_t category_at(double coordinate) const;
  double coordinate_of_category(std::size_t category) const;

 private:
  std::size_t place_in_list(const Scalar& value) const;
  double number_at(double coordinate) const;
  double coordinate_of_number(double number) const;
  double clamped(double coordinate) const;

  Dimension field_;
  Kind kind_ = Kind::Category;
  std::optional<Places> places_ = {};  // of Kind::Integer
  double values_ = 0;
  // Of Kind::Real.
  bool is_log_ = false;
  double mean_ = 0, deviation_ = 0;  // of a normal distribution; 0: it is none
  double low_ = 0;                   // of coordinate 0: as a logarithm where is_log_
  double high_ = 1;                  // of coordinate 1
};

/// The searched fields of a space, in its order: those with more than one value. A grid counts as a
/// choice. A value type.
class Axes {
 public:
  explicit Axes(const SearchSpace& space);

  std::size_t size() const { return axes_.size(); }
  const Axis& operator[](std::size_t index) const { return axes_[index]; }
  auto begin() const { return axes_.begin(); }
  auto end() const { return axes_.end(); }

  /// All fields of the space in its order, constants too, of a trial of a search with this seed: of a block of values
  /// (Axis) the trial has one of its own. Asserts a coordinate for each axis.
  Configuration configuration(std::span<const double> point, std::uint64_t seed,
                              TrialId trial) const;
  /// A coordinate for each axis. Throws std::invalid_argument, naming the field, where one is
  /// missing or its value is not in the domain.
  std::vector<double> point(const Configuration& configuration) const;

 private:
  SearchSpace space_;
  std::vector<Axis> axes_;
};

}  // namespace troupe::tune
