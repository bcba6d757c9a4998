#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// Of a search with tree-structured Parzen estimators.
struct TpeOptions {
  /// Trials that have to be over before the models are used; until then configurations are points of
  /// a scrambled Sobol sequence, which cover the space more evenly than random ones. In a space of
  /// more fields than that sequence has dimensions they are drawn as RandomSearcher draws them.
  std::uint64_t startup_trials = 10;
  /// Drawn from the model of the good trials for each suggestion, of which the best is taken; at
  /// least 1. Where none is named: 48 of the joint model, 10 of each field by itself.
  std::optional<std::size_t> candidates = {};
  /// One model of all fields together, which sees that good values of one field go with good values
  /// of another. Otherwise each field is modelled by itself.
  bool multivariate = true;
  /// Trials that are still under way count as bad, so that suggestions made at the same time differ.
  /// Otherwise they are not looked at.
  bool constant_liar = true;
  /// Part of the trials that are over which counts as good; above 0, at most 1. Optuna has 0.1:
  /// with 0.15 the regrets of `./run bench tune searchers` are lower on most functions.
  double gamma = 0.15;
  std::size_t most_good = 25;  ///< trials that count as good at most; at least 1
  /// How many times narrower the kernels of numbers are than the gaps between trials: above 1, the
  /// search stays nearer to what it has found. Above 0; where none is named: 1.1 in the joint model,
  /// 1.25 for each field by itself.
  std::optional<double> narrowing = {};
};

/// Tree-structured Parzen estimators (Bergstra, Bardenet, Bengio and Kegl, 2011, "Algorithms for
/// hyper-parameter optimization", NeurIPS, section 4; the details are surveyed by Watanabe, 2023,
/// arXiv 2304.11127, section 3). The trials are split into a few good ones and the others, l(x) is
/// a density estimated from the good ones and g(x) from the others, and of some candidates drawn
/// from l the one with the highest l(x)/g(x) is suggested, which maximises the expected improvement.
/// Right for tens to thousands of trials, spaces with integers and choices, and searches that a
/// scheduler cuts short. The rules are those of Optuna 5's TPESampler but for `gamma`, `narrowing`,
/// the number of candidates and the first trials:
///
///   1 Good     are, of n trials that are over, the best min(ceil(gamma * n), most_good): first those that ran to their
///              end, by their best report; then those that the scheduler stopped, the longest first, then by their
///              last report. An errored trial, and one without a finite value, is bad.
///   2 Density  a mixture of one kernel for each trial of the set, and a prior kernel as wide as the range. Both are
///              truncated normals in [0, 1], on the scale of the logarithms for a log range, and discretised for
///              integers. A kernel is as wide as the gap to its farther neighbour (the first and the last one's, to
///              their only neighbour; a single one's, to the farther end of the range), divided by `narrowing`, but at
///              least 1 / min(100, 2 + number of trials) of the range.
///   3 Choice   a kernel of a choice or a grid gives its own value 1 + 1/k parts and the others 1/k, k kernels in all.
///   4 Weights  of the kernels are 1; in a set of n > 25 trials those of the n - 25 oldest rise from 1/n to 1. The
///              prior has weight 1.
///   5 Joint    (`multivariate`): a kernel is the product over all fields, and a candidate is drawn and scored as a
///              whole.
///
/// A function of (options, setup, seed, order of suggestions and ends). A suggestion after 1,000
/// trials over five fields takes about a millisecond; cost and memory grow with the trials.
///
/// Throws std::invalid_argument, naming the values, for options that are not as said above. The
/// factory throws it where `.trials` is 0.
SearcherFactory tpe(TpeOptions options = {});

}  // namespace troupe::tune
