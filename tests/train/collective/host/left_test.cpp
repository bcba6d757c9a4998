// A rank one of whose calls has failed, as its process is told of it.
#include <troupe/train/communicator.hpp>

#include <chrono>
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

/// Stays for longer than the others may wait, as an actor does that waits for its next call.
void fail_a_call() {
  troupe::detail::tell_failed_call({.kind = Failure::Kind::Task, .message = "no such row"});
  eventually([] { return false; }, std::chrono::seconds(8));
}

void check_that_it_was_left(const Outcome& outcome, int rank) {
  INFO(outcome.message);
  CHECK(outcome.type == "GangBroken");
  CHECK_THAT(outcome.message, Contains("rank " + std::to_string(rank) +
                                       " left the communicator, as its call failed: no such row"));
  CHECK(outcome.seconds < 7);
}

}  // namespace

TEST_CASE("ranks of other nodes leave a collective when the call of a rank has failed",
          "[train][collective][failure][ring]") {
  const auto gang = GENERATE(ForkedGang::on_nodes(3, 3), ForkedGang::on_nodes(4, 2));
  const int last = static_cast<int>(gang.node_ranks.size()) - 1;
  const auto outcomes = gang.run([last](GangContext& context) {
    auto comm = make_host_communicator(context);
    float x = 1;
    comm->all_reduce(std::span(&x, 1));
    if (context.rank() == last) return fail_a_call();
    comm->all_reduce(std::span(&x, 1));
  });
  for (int r = 0; r < last; ++r)
    check_that_it_was_left(outcomes[static_cast<std::size_t>(r)], last);
  CHECK(failures({outcomes.back()}) == "");
}

TEST_CASE("the first message of a rank of another node whose call has failed is not waited for",
          "[train][collective][failure][ring]") {
  const auto outcomes = ForkedGang::on_nodes(2, 2).run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    float x = 1;
    if (context.rank() == 1) return fail_a_call();
    comm->recv(std::span(&x, 1), 1);
  });
  check_that_it_was_left(outcomes[0], 1);
}
