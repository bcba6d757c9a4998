#pragma once

#include <cstddef>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// Of the model of BOHB.
struct BohbModelOptions {
  double random = 1.0 / 3;  ///< part of the trials that are drawn at random; 0 to 1
  double good = 0.15;       ///< part of a rung's trials that count as good; above 0, at most 0.5
  std::size_t candidates = 64;  ///< of which the best is taken; at least 1
  double widening = 3;  ///< factor of the bandwidths that candidates are drawn with; above 0
};

/// The model of BOHB (Falkner, Klein and Hutter, 2018, arXiv 1807.01774, section 3.2), for a search
/// beside a scheduler that stops or pauses trials at rungs: `.searcher = bohb_model(), .scheduler =
/// asha({...})`. It learns from reports while trials run, and from the rung that the best-trained
/// trials have reached, so that it needs no trial that is over.
///
///   1 Rungs    are the numbers t of the trials' reports. A trial's value at rung t is its report there, or the first one
///              behind it, where the metric comes only now and then. The model is that of the highest t with 2(d+1) values
///              or more, d the fields with more than one value (of a choice too). Until there is one, trials are drawn as
///              RandomSearcher draws them.
///   2 Good     of the n values of the rung are the best max(d + 1, good * n), bad are the next max(d + 1, (1 - good) * n).
///              What is not finite is the worst, and a trial that fails is the worst at the report after its last.
///   3 Density  of either: a Gaussian kernel for each value, and for a choice that of Aitchison and Aitken (1976), with
///              bandwidths 1.06 * deviation * size^(-1/(4 + d)), at least 0.001 and half of an integer, in coordinates in
///              [0, 1]. (The paper has 0.001 for integers, too: good trials that all have one integer keep it then.)
///   4 Candidates are drawn around good trials, each equally likely: along a number from a normal distribution in [0, 1]
///              with the bandwidth `widening` times as large; a choice is kept with probability 1 - bandwidth, else drawn
///              anew. The one with the highest ratio of the good density to the bad one is suggested.
///   5 Random   is a part of the trials at any time, so that the search finds every optimum in the end.
///
/// A function of (options, setup, order of the calls). Cost of a suggestion: O(candidates n d), and
/// where the metric comes now and then the reports behind the rung; of a report: O(d), but where the
/// model goes to another rung. Memory: the reports at the model's rung
/// and behind it.
///
/// Throws std::invalid_argument, naming the values, for options that are not as said above. The
/// factory throws it where `.trials` is 0.
SearcherFactory bohb_model(BohbModelOptions options = {});

}  // namespace troupe::tune
