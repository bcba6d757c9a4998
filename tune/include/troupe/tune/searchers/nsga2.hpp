#pragma once

#include <cstddef>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// Of a search with NSGA-II.
struct Nsga2Options {
  /// Trials of a generation, and parents that are chosen after it; at least 2. Of some hundred trials
  /// a smaller one, as 20, makes more.
  std::size_t population = 50;
  /// Probability that a child has two parents, not one; 0 to 1.
  double crossover = 0.9;
  /// Probability that a field of a child mutates; 0 to 1. 0: 1/d, d the fields with more than one
  /// value.
  double mutation = 0;
  /// Of the distribution of a number between and around its parents' (eta_c of Deb and Agrawal): the
  /// higher, the closer to one of them; at least 0. Deb takes 20 of both for 25,000 trials; with
  /// hundreds of them lower ones find the larger front.
  double crossover_index = 5;
  /// Of the distribution of a number that mutates (eta_m): the higher, the closer to what it was; at
  /// least 0.
  double mutation_index = 5;
};

/// NSGA-II (Deb, Pratap, Agarwal and Meyarivan, 2002, "A fast and elitist multiobjective genetic
/// algorithm: NSGA-II", IEEE Transactions on Evolutionary Computation 6(2)): searches for the Pareto
/// front of several objectives (Options::objectives), by some ten generations or more of `population`
/// trials; any number of trials may run at once. With one objective it is a genetic algorithm. For
/// hundreds of trials and more, over fields of every kind.
///
///   1 Space      a real field is a coordinate in [0, 1], a log one by its logarithm, an integer and an ordinal the
///                middle of its interval; a choice and a grid have no order. Constants are passed on.
///   2 Value      of a trial are all objectives in its last report that has them, also where a scheduler stopped it; with
///                one objective it is the best of its reports. A trial that failed, has no such report, or has a value
///                in it that is not finite, is dominated by every other one. Of constraints (Options::constraints) it
///                has the violation in the same report. Of two trials the one with the lower violation is in the lower
///                front, whatever its objectives (Deb's rule, section VI-A); a trial that failed has an infinite one.
///   3 Begin      Until the first generation is whole, configurations are drawn as RandomSearcher draws them.
///   4 Generation are the results of `population` trials, in the order in which they end, whichever parents they had: a
///                trial that ends late counts in the generation in which it ends (Optuna counts it in its own, and
///                forgets it where that is over). When the last of them ends, the parents of the next ones are chosen
///                from them and the parents before: front by front of the fast non-dominated sort (section III-A), of the
///                front that does not fit the trials with the largest crowding distance (III-B), of equals those with the
///                lower number.
///   5 Parents    Two parents are chosen, each the better one of two that are drawn (binary tournament): of the lower
///                front, of one front with the larger crowding distance. A trial is bred from the parents as they are when
///                it is asked for: no trial waits for a generation.
///   6 Crossover  With probability `crossover`: half of the fields are taken from the first parent; the others are, if
///                numbers, drawn by simulated binary crossover (Deb and Agrawal, 1995, bounded as in Deb's own program),
///                if choices, one or the other parent's. Else the child is the first parent.
///   7 Mutation   A field mutates with probability `mutation`: a number by polynomial mutation (Deb and Goyal, 1996), one
///                of few values to another one at least; a choice to one of the other values, each equally likely.
///   8 Twins      A child like a parent, like a trial of the generation or like one under way has one field more mutated,
///                up to ten times: a trial is too costly to be run twice (not in the paper).
///
/// A function of (options, setup, order of the calls). Cost of a suggestion: O(d (population + trials under way)), of
/// a generation O(m population^2), m objectives. Memory: O(d population).
///
/// Throws std::invalid_argument, at once, for options outside of what they allow. The factory throws
/// it for a space in which no field has more than one value, and where `.trials` is 0.
SearcherFactory nsga2(Nsga2Options options = {});

}  // namespace troupe::tune
