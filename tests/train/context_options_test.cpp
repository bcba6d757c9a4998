// The options of a run's contexts reach each rank.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/seen_options.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

void tell_options(train::Context& ctx, const NoConfig&) { ctx.report(seen_options(ctx)); }

/// A function's own context, which makes a train::Context with options of its own.
struct OwnContext {
  explicit OwnContext(Member& member) : context(member, {.threads = 2}) {}
  train::Context context;
};
void tell_own_options(OwnContext& own, const NoConfig&) {
  own.context.report(seen_options(own.context));
}

train::RunOptions here(train::Where where, int workers) {
  return {.workers = workers, .where = where, .context = unusual_options()};
}

}  // namespace

TEST_CASE("every option of a run's contexts reaches each rank", "[train][run][options]") {
  const auto result = train::run<tell_options>({}, here(train::Where::ThisNode, 2));
  REQUIRE(result.history.size() == 1);
  CHECK(values_of(result.history[0].metrics) == expected_options(unusual_options(), 2));

  CHECK(train::ContextOptions().warn_after == std::chrono::seconds(30));
  const auto plain = train::run<tell_options>({}, {.workers = 2, .where = train::Where::ThisNode});
  CHECK(values_of(plain.history.at(0).metrics) == expected_options({}, 2));
}

TEST_CASE("options that a function's own context gives go before those of the run",
          "[train][run][options]") {
  const auto result = train::run<tell_own_options>({}, here(train::Where::ThisNode, 2));
  CHECK(values_of(result.history.at(0).metrics) == expected_options({.threads = 2}, 2));
}

TEST_CASE("options of another context are refused by name", "[train][run][options]") {
  troupe::detail::LocalMember member({.settings = {.type = "OtherOptions", .bytes = "x"}}, {});
  CHECK_THROWS_WITH(train::Context(member),
                    Contains("OtherOptions") && Contains("train::ContextOptions"));
}

// Last: it uses LibTorch in this process, which forks no more after it.
TEST_CASE("every option of a run's contexts reaches a run in this process",
          "[train][run][options]") {
  const auto result = train::run<tell_options>({}, here(train::Where::InProcess, 1));
  CHECK(values_of(result.history.at(0).metrics) == expected_options(unusual_options(), 1));
}
