#pragma once

#include <cstddef>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

struct CmaesOptions {
  /// Standard deviation of the first points around the middle of the space, every field's range
  /// being 1; above 0, at most 1.
  double sigma = 1.0 / 6;
  /// Trials whose results make a generation, at least 2; 0: 4 + floor(3 ln d), d fields.
  std::size_t population = 0;
  /// A search that has converged begins again at a random place, with twice the population (IPOP,
  /// Auger and Hansen, 2005); else it goes on where it is.
  bool restart = true;
  /// Fields of a choice or a grid, for which the algorithm has no place, are drawn at random for
  /// every trial. False: a space with such a field is refused.
  bool random_choices = false;
};

/// CMA-ES (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772): trials are drawn from a normal
/// distribution that begins in the middle of the space and, after each generation, moves and turns
/// towards the better ones. For fields that are numbers, some 3 to 50 of them, and 100 trials for
/// each or more; with fewer trials a model (tpe, gaussian_process) finds better ones.
///
///   1 Space      a real field is a coordinate in [0, 1], a log one by its logarithm; so is an integer, of which a
///                number is an interval. Constants are passed on.
///   2 Drawn      are points of the distribution inside the space; after 100 outside, the last one is moved to the
///                boundary. A trial's point is a function of (options, setup, order of the calls, trial).
///   3 Generation are the results of as many trials as the population has, in the order in which they end, ranked by
///                value; the distribution changes as the last of them ends, by Hansen's constants (table 1 of 2023,
///                with negative weights).
///   4 Parallel   Any number of trials may run: those beyond a generation are drawn from the distribution as it
///                stands. A trial that ends in a later generation than its own counts in that one, its step cut to
///                the length that Hansen gives for injected solutions (arXiv 1110.4181). (Optuna leaves it out.)
///   5 Value      of a trial is the best of its reports, also where a scheduler stopped it. A trial that failed, or
///                reported nothing finite, is the worst of its generation; a generation of such trials alone changes
///                nothing.
///   6 Integers   keep a probability of 1/(d * population) at least to differ from the distribution's middle: CMA-ES
///                with margin (Hamano et al., 2022, arXiv 2205.13482).
///   7 Converged  is a search whose deviations are below 1e-12 of the first ones, whose covariance has a condition
///                number above 1e14, or whose generations had the same best value, to 1e-12 of it, for 10 +
///                ceil(30 d / population) generations. Results of trials that were drawn before a restart do not
///                count after it.
///
/// Cost: O(d^2) for a trial, O(d^3) for a generation. Memory: O(d^2), and the trials under way.
///
/// Throws std::invalid_argument, at once, for options outside of what they allow. The factory throws
/// it, naming the field, for a choice or a grid without `random_choices` and for a space without a
/// number to search, and where `.trials` is 0.
SearcherFactory cmaes(CmaesOptions options = {});

}  // namespace troupe::tune
