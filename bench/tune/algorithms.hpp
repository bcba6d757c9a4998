#pragma once

#include <string>
#include <vector>

#include <troupe/tune/searcher.hpp>

namespace troupe::bench {

/// One row of searchers_bench. Its peer is the entry of this name in bench/peer/optuna_searchers.py.
struct Algorithm {
  std::string name = {};
  tune::SearcherFactory factory = {};
  std::uint64_t timed_after = 1000;  ///< trials that are over when its suggestions are timed
  bool finds_fronts = false;         ///< is measured with two objectives too
};

/// All of them, random search first.
std::vector<Algorithm> algorithms();

}  // namespace troupe::bench
