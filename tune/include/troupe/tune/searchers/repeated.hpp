#pragma once

#include <cstddef>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// Runs each configuration that `searcher` proposes `times` times, as trials of their own with seeds
/// of their own, and tells it the mean: for metrics with so much noise that one trial says little.
/// `.searcher = repeated(tpe(), 3)`, `.trials = 60` searches 20 configurations; trials that are left
/// over are not run.
///
///   Told     is the searcher once all of a configuration's trials are over: the means of their best, of their last and of all
///            objectives' values, of those that are finite; errored, where all are. It is told no reports while they run.
///   Given    configurations (Options::first) run once each.
///
/// A scheduler judges each trial by itself. Throws std::invalid_argument unless times >= 1, and an
/// empty `searcher` is a random one. A run with fewer than `times` trials, and none that are given,
/// is refused.
SearcherFactory repeated(SearcherFactory searcher, std::size_t times);

/// Asks `searcher` for `size` configurations, and for the next ones when the trials of all of those
/// are over: for searchers that learn most from whole generations. Gangs wait meanwhile. Refused
/// beside a scheduler that pauses trials (hyperband, asha with `promote`), which waits for others.
/// Throws std::invalid_argument unless size >= 1; an empty `searcher` is a random one.
SearcherFactory batched(SearcherFactory searcher, std::size_t size);

}  // namespace troupe::tune
