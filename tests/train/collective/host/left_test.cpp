// A rank one of whose calls has failed, as its process is told of it.
#include <troupe/train/communicator.hpp>

#include <span>
#include <string>

#include <catch2/catch.hpp>
#include <troupe/detail/failed_calls.hpp>

#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// Stays, as an actor does that waits for its next call, until the others wait no more.
void fail_a_call(GangContext& gang) {
  troupe::detail::tell_failed_call({.kind = Failure::Kind::Task, .message = "no such row"});
  await_leaving(gang);
}

void check_that_it_was_left(const Outcome& outcome, int rank) {
  INFO(outcome.message);
  CHECK(outcome.type == "GangBroken");
  CHECK_THAT(outcome.message, Contains("rank " + std::to_string(rank) +
                                       " left the communicator, as its call failed: no such row"));
}

}  // namespace

TEST_CASE("ranks of other nodes leave a collective when the call of a rank has failed",
          "[train][collective][failure][ring]") {
  const auto gang = GENERATE(ForkedGang::on_nodes(3, 3), ForkedGang::on_nodes(4, 2));
  const int last = static_cast<int>(gang.node_ranks.size()) - 1;
  const auto outcomes = gang.run([last](GangContext& context) {
    const Leaving leaving(context, last);
    auto comm = make_host_communicator(context);
    float x = 1;
    comm->all_reduce(std::span(&x, 1));
    if (context.rank() == last) return fail_a_call(context);
    comm->all_reduce(std::span(&x, 1));
  });
  for (int r = 0; r < last; ++r)
    check_that_it_was_left(outcomes[static_cast<std::size_t>(r)], last);
  CHECK(failures({outcomes.back()}) == "");
}

TEST_CASE("the first message of a rank of another node whose call has failed is not waited for",
          "[train][collective][failure][ring]") {
  const auto outcomes = ForkedGang::on_nodes(2, 2).run([](GangContext& context) {
    const Leaving leaving(context, 1);
    auto comm = make_host_communicator(context);
    float x = 1;
    if (context.rank() == 1) return fail_a_call(context);
    comm->recv(std::span(&x, 1), 1);
  });
  check_that_it_was_left(outcomes[0], 1);
  CHECK(failures({outcomes[1]}) == "");
}
