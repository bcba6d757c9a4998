#include <troupe/tune/schedulers/pb2.hpp>

#include <utility>

#include "schedulers/pb2/bandit.hpp"

namespace troupe::tune {
namespace {

PbtOptions population_of(const Pb2Options& options) {
  return {.interval = options.interval,
          .burn_in = options.burn_in,
          .max_t = options.max_t,
          .quantile = options.quantile,
          .resample = options.resample,
          .synchronous = options.synchronous,
          .mutate = options.mutate};
}

}  // namespace

SchedulerFactory pb2(Pb2Options options) {
  // Refuses bad options here, where they were written.
  check(population_of(options), "pb2");
  bandit_explorer(options, 0);
  return [options = std::move(options)](const Objective& objective, std::uint64_t seed) {
    return std::make_unique<Pbt>(population_of(options), objective, seed,
                                 bandit_explorer(options, seed));
  };
}

}  // namespace troupe::tune
