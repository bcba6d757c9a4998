#pragma once

#include <cstddef>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

struct GaussianProcessOptions {
  /// Trials whose results are awaited before there is a model; at least 2.
  std::size_t startup = 10;
  /// Points among which the place to climb from is looked for, for every suggestion; at least 1.
  /// With more than 300 results, fewer in proportion.
  std::size_t candidates = 2048;
  /// Results that the model's parameters are fitted to, at most; at least 10.
  std::size_t fitted = 250;
  /// Results that the model knows, at most; at least 10. A suggestion costs O(known^3).
  std::size_t known = 1500;
};

/// Bayesian optimisation with a Gaussian process: each trial is the one of which the model of all
/// results expects the greatest improvement. For costly trials, up to some 1000 of them, and up to
/// some 20 fields, above all real ones; where trials are cheap or fields many, tpe or cmaes.
///
///   1 Startup    while fewer than `startup` trials have ended with a finite value, trial i is point i of a scrambled
///                Sobol sequence (Optuna draws them at random).
///   2 Space      a real field is a coordinate in [0, 1], a log one by its logarithm, an integer the middle of its
///                interval. Two values of a choice or a grid are one apart, or none (Hamming).
///   3 Model      Matern 5/2 kernel with a length for each field, of the values less their mean and divided by their
///                deviation. Lengths, scale and noise are those of the highest posterior density, with the priors of
///                Optuna's GPSampler, found by L-BFGS from those found last. The noise's variance is 1e-10 at least
///                (Optuna: 1e-6).
///   4 Fitted     are the parameters anew after every result up to 100 of them, and then whenever there are a tenth
///                more (Optuna: always); from ones too up to 30 results, at every eighth, and beyond 100. With
///                more results than `fitted`, and in the model with more than `known`, half of those that are let in
///                are the best, the others are spread evenly over the rest.
///   5 Improved   is the logarithm of the expected improvement (Ament et al., 2023, arXiv 2310.20708) over the best
///                value: the best of the candidates, and others, are climbed from by L-BFGS, and a field that is no
///                real one takes the best of its values in turn (an integer with more than 32 is moved like a real
///                one, and rounded then).
///   6 Parallel   A trial that runs counts as a result of the value that the model expects of it (the kriging believer
///                of Ginsbourger, Le Riche and Carraro, 2010; Optuna integrates over samples of it).
///   7 Value      of a trial is the best of its reports, also where a scheduler stopped it. A trial that failed, or
///                reported nothing finite, counts as the worst finite one (Optuna leaves out the failed).
///
/// Cost of a suggestion with n results known or awaited: O(n^3 + candidates n^2), and of a fit 100 times O(m^3), m of them fitted:
/// some ten milliseconds for tens of results, some hundred for a thousand. Memory: O(n^2) while it is made.
///
/// Throws std::invalid_argument, at once, for options outside of what they allow. The factory throws
/// it for a space in which no field, or more than 3667, have more than one value, and where
/// `.trials` is 0.
SearcherFactory gaussian_process(GaussianProcessOptions options = {});

}  // namespace troupe::tune
