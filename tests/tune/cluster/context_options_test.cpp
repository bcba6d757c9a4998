// The options of a sweep's contexts reach each rank of each trial.
#include <troupe/train.hpp>
#include <troupe/tune.hpp>

#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/seen_options.hpp"

#include <troupe/cluster.hpp>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

void tell_options(train::Context& ctx, const NoConfig&) { ctx.report(seen_options(ctx)); }
void without_options(tune::Context& ctx, const NoConfig&) { ctx.report({{"ranks", 1}}); }

tune::Options<NoConfig> two_trials(int workers) {
  return {.space = {{"index", tune::grid({0, 1})}},
          .metric = "ranks",
          .each = {.workers = workers, .context = unusual_options()},
          .show = tune::Show::None};
}

void check_trials(const tune::Results<NoConfig>& results, int workers) {
  REQUIRE(results.trials().size() == 2);
  for (const auto& trial : results.trials()) {
    CHECK(trial.trial.error == "");
    CHECK(values_of(trial.trial.last) == expected_options(unusual_options(), workers));
  }
}

}  // namespace

TEST_CASE("every option of a sweep's contexts reaches each rank of each trial",
          "[tune][cluster][options]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  check_trials(tune::run<tell_options>(two_trials(2)), 2);
}

TEST_CASE("a sweep of a function whose context takes no options refuses them by name",
          "[tune][options]") {
  CHECK_THROWS_WITH(tune::run<without_options>(two_trials(1)),
                    Contains("train::ContextOptions") && Contains("tune::Context"));
}

// Last: it uses LibTorch in this process, which forks no more after it.
TEST_CASE("every option of a sweep's contexts reaches a sweep in this process", "[tune][options]") {
  auto options = two_trials(1);
  options.in_process = true;
  check_trials(tune::run<tell_options>(options), 1);
}
