#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

/// Of population-based bandits. What has the name of a value in PbtOptions means the same.
struct Pb2Options {
  /// Reports between two times that a member is judged; at least 1, has to be given.
  std::int64_t interval = 0;
  std::int64_t burn_in = 0;  ///< nobody is judged before this t
  std::int64_t max_t = 0;    ///< a trial is finished at this t; 0: when its function returns
  /// Part of the population that takes over, and that is taken over; 0 to 0.5.
  double quantile = 0.25;
  /// Probability that a choice is drawn anew, not moved to a neighbour; 0 to 1.
  double resample = 0.25;
  /// The population waits for its last member at every interval.
  bool synchronous = false;
  /// The fields that change: {{"lr", loguniform(1e-4, 1)}}; others keep the donor's value. A range is
  /// what the bandit chooses from; at least one has to be a range.
  SearchSpace mutate = {};
  /// Intervals that the model knows, the last ones; at least 10. A takeover costs O(known^3).
  std::size_t known = 200;
};

/// Population-based bandits (PB2; Parker-Holder, Nguyen and Roberts, 2020, "Provably efficient online
/// hyperparameter optimization with population-based bandits", arXiv 2002.02518): population-based
/// training (pbt.hpp, rules 1 to 3 and 5 to 8) whose explore step asks a model where the metric will
/// improve most, in place of multiplying by random factors. For small populations, of 4 to some 16
/// members, in which random factors find too little.
///
///   1 Data     are the intervals that members trained with one configuration, from a judgement, a takeover or their
///              first report to the next judgement: (t at its begin in units of `interval`, configuration, improvement
///              of the metric for each report). Values that are not finite give none. Improvements are standardized.
///   2 Space    Fields that are ranges are coordinates in [0, 1], log ones by their logarithm; an integer is rounded.
///   3 Model    A Gaussian process with the paper's kernel (Bogunovic, Scarlett and Cevher, 2016): a squared
///              exponential over the configurations, with a length for each field, times (1 - omega)^(|t - t'| / 2), which
///              forgets. Lengths, scale, noise and omega have the highest posterior density that L-BFGS finds, with the
///              priors of gaussian_process() and a uniform one of omega in [0, 1].
///   4 Chosen   is the configuration with the highest upper confidence bound, mean + sqrt(beta) deviation, at the donor's
///              t, with beta = 0.2 log(0.4 n) of n intervals, at least 0 (Ray's, which adds the variance). The deviation
///              is that after the results of what other members train with just now, whatever those will be (GP-BUCB;
///              Desautels, Krause and Burdick, 2014), so that members choose differently.
///   5 Begin    Until there are more intervals than ranges, and 4 at least, ranges are drawn anew from their domains.
///   6 Choices  ordinals, grids and constants are changed as pbt() changes them.
///
/// A function of (options, objective, seed, order of reports). Cost of a takeover: a fit, 100 times O(n^3 + d n^2): some 10 ms
/// with 50 intervals, 0.1 to 0.2 s with 200.
///
/// Throws std::invalid_argument, at once and naming the field or the value, for options that Pbt would refuse, for
/// `known` below 10, for a normal distribution (which has no bounds) and where no field of `mutate` is a range.
SchedulerFactory pb2(Pb2Options options);

}  // namespace troupe::tune
