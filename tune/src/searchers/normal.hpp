#pragma once

#include <troupe/tune/random.hpp>

/// The standard normal distribution, exact to about 1e-13 relative also far out in the tails, where
/// the probabilities themselves are too small for a double and their logarithms are not. Arguments
/// may be infinite. What lies between two points that are near each other has lost the digits that
/// their difference has lost.
namespace troupe::tune {

double normal_log_density(double x);
/// The probability below x.
double normal_cdf(double x);
/// Its logarithm, down to x = -1e154.
double normal_log_cdf(double x);
/// The inverse of normal_cdf; minus infinity at 0, infinity at 1. Asserts 0 <= probability <= 1.
double normal_quantile(double probability);
/// The inverse of normal_log_cdf. Asserts log_probability <= 0.
double normal_log_quantile(double log_probability);
/// The logarithm of the probability between low and high; minus infinity where they are equal.
/// Asserts low <= high.
double normal_log_mass(double low, double high);
/// The point between low and high below which a part of that probability lies. Asserts low <= high
/// and 0 <= part <= 1.
double truncated_normal_quantile(double part, double low, double high);

double draw_normal(Random& random);
/// Of mean and deviation, in [low, high]. Asserts deviation > 0 and low <= high.
double draw_truncated_normal(Random& random, double mean, double deviation, double low,
                             double high);

}  // namespace troupe::tune
