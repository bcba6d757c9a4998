#pragma once

#include <vector>

#include <troupe/tune/random.hpp>
#include <troupe/tune/searchers/nsga2.hpp>

#include "searchers/axis.hpp"

/// How NSGA-II breeds a child (nsga2.hpp, rules 6 and 7). A point has a settled coordinate for each
/// axis. Pure.
namespace troupe::tune {

using GenePoint = std::vector<double>;

/// Simulated binary crossover of two coordinates in [0, 1], one of the two children, each equally
/// likely: bounded as in Deb's own program, so that it is in [0, 1] too.
double crossed(double a, double b, double index, Random& random);
/// Polynomial mutation of a coordinate in [0, 1].
double mutated(double x, double index, Random& random);

/// Of two parents (rule 6, without its probability).
GenePoint crossed(const Axes& axes, const GenePoint& a, const GenePoint& b, double index,
                  Random& random);
/// Moves one field to another value.
void mutate_field(const Axis& axis, double& x, double index, Random& random);
/// Each field with its probability (rule 7).
void mutate(const Axes& axes, GenePoint& point, const Nsga2Options& options, Random& random);

}  // namespace troupe::tune
