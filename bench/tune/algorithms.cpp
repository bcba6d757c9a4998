#include "tune/algorithms.hpp"

#include <memory>

#include <troupe/tune/searchers/cmaes.hpp>
#include <troupe/tune/searchers/gaussian_process.hpp>
#include <troupe/tune/searchers/nsga2.hpp>
#include <troupe/tune/searchers/quasi_random.hpp>
#include <troupe/tune/searchers/tpe.hpp>

namespace troupe::bench {

std::vector<Algorithm> algorithms() {
  const auto random = [](const tune::SearchSetup& setup) {
    return std::make_unique<tune::RandomSearcher>(setup.space, setup.seed, setup.trials);
  };
  return {{"random", random, 1000, true},
          {"nsga2", tune::nsga2(), 1000, true},
          {"sobol", tune::sobol()},
          {"halton", tune::halton()},
          {"tpe", tune::tpe({.multivariate = false})},
          {"tpe_multivariate", tune::tpe({.multivariate = true})},
          {"cmaes", tune::cmaes()},
          {"gaussian_process", tune::gaussian_process(), 200}};
}

}  // namespace troupe::bench
