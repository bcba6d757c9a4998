#pragma once

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// Of a Sobol search.
struct SobolOptions {
  /// Nested uniform scrambling (Owen, 1995) by the seed: every point is uniform in its space, the
  /// points together lie as evenly as before, and another seed gives other points. Without it the
  /// seed changes nothing, and trial 0 has the lower end of every range.
  bool scramble = true;
};

/// Trials at the points of a Sobol sequence, which fill the space more evenly than points drawn at
/// random: for a search whose trials all run at once, or as a design for later models. The direction
/// numbers are those of Joe and Kuo (2008, "Constructing Sobol sequences with better two-dimensional
/// projections"). Numbers of trials that are powers of two are the most even.
///
/// Trial i has point i: its configuration is a function of (seed, i) and of the order of the space's
/// fields, and what trials report changes nothing. An integer and one of n values of a choice each
/// have the same share of the coordinate; a grid counts as a choice. Pure like every Searcher; a
/// suggestion costs about a microsecond a field.
///
/// The factory throws std::invalid_argument where `.trials` is 0, and for more than 3,667 fields
/// that have more than one value.
SearcherFactory sobol(SobolOptions options = {});

/// Of a Halton search.
struct HaltonOptions {
  /// Each digit of a coordinate is permuted at random (Owen, 2017, "A randomized Halton algorithm in
  /// R"), by the seed. Without it the seed changes nothing, trial 0 has the lower end of every
  /// range, and fields beyond the tenth or so are badly correlated.
  bool scramble = true;
};

/// Like sobol, at the points of a Halton sequence: the coordinate of the k-th field is the number of
/// the trial mirrored at the point in base p, the k-th prime number. No number of trials is better
/// than others; from about ten fields on Sobol's points are more even.
///
/// The factory throws std::invalid_argument where `.trials` is 0, and for more than 1,000 fields
/// that have more than one value.
SearcherFactory halton(HaltonOptions options = {});

}  // namespace troupe::tune
