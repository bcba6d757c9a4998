#include <troupe/train/work.hpp>

#include <chrono>
#include <csignal>
#include <future>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "collective/host/host_options.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

constexpr auto kFloat = DataType::Float32;
constexpr std::size_t kCount = 5000;  // of several chunks

std::vector<float> numbers(int rank, std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(rank));
  return numbers;
}

/// What each collective gives, by the communicator's own calls, or by works of a queue that are all
/// begun before the first is waited for.
struct Results {
  std::vector<float> summed, broadcast, gathered, scattered, dealt;
  std::vector<float> unequal, reduced, collected, given;
  friend bool operator==(const Results&, const Results&) = default;
};

Results inputs(const Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  return {.summed = numbers(comm.rank(), kCount),
          .broadcast = numbers(comm.rank() + 7, kCount),
          .gathered = std::vector<float>(kCount * ranks),
          .scattered = std::vector<float>(kCount),
          .dealt = std::vector<float>(kCount * ranks),
          .unequal = std::vector<float>(kCount * ranks),
          .reduced = std::vector<float>(kCount),
          .collected = std::vector<float>(kCount * ranks),
          .given = std::vector<float>(kCount)};
}

/// Of unequal parts, which together are as large as equal ones.
std::vector<std::size_t> counts_of(const Communicator& comm) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), kCount);
  if (comm.size() > 1) {
    counts.front() += 1000;
    counts.back() -= 1000;
  }
  return counts;
}

Results by_calls(Communicator& comm) {
  auto results = inputs(comm);
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto mine = numbers(comm.rank(), kCount), whole = numbers(comm.rank(), kCount * ranks);
  comm.all_reduce(results.summed.data(), kCount, kFloat, ReduceOp::Sum);
  comm.broadcast(results.broadcast.data(), kCount, kFloat, comm.size() - 1);
  comm.all_gather(mine.data(), results.gathered.data(), kCount, kFloat);
  comm.reduce_scatter(whole.data(), results.scattered.data(), kCount, kFloat, ReduceOp::Average);
  comm.all_to_all(whole.data(), results.dealt.data(), kCount, kFloat);
  comm.all_gather(whole.data(), results.unequal.data(), counts_of(comm), kFloat);
  comm.reduce(mine.data(), results.reduced.data(), kCount, kFloat, ReduceOp::Max, 0);
  comm.gather(mine.data(), results.collected.data(), kCount, kFloat, comm.size() - 1);
  comm.scatter(whole.data(), results.given.data(), kCount, kFloat, 0);
  return results;
}

Results by_works(Communicator& comm) {
  auto results = inputs(comm);
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto mine = numbers(comm.rank(), kCount), whole = numbers(comm.rank(), kCount * ranks);
  WorkQueue queue(comm);
  const std::vector<Work> works{
      queue.all_reduce(results.summed.data(), kCount, kFloat),
      queue.broadcast(results.broadcast.data(), kCount, kFloat, comm.size() - 1),
      queue.all_gather(mine.data(), results.gathered.data(), kCount, kFloat),
      queue.barrier(),
      queue.reduce_scatter(whole.data(), results.scattered.data(), kCount, kFloat,
                           ReduceOp::Average),
      queue.all_to_all(whole.data(), results.dealt.data(), kCount, kFloat),
      queue.all_gather(whole.data(), results.unequal.data(), counts_of(comm), kFloat),
      queue.reduce(mine.data(), results.reduced.data(), kCount, kFloat, ReduceOp::Max, 0),
      queue.gather(mine.data(), results.collected.data(), kCount, kFloat, comm.size() - 1),
      queue.scatter(whole.data(), results.given.data(), kCount, kFloat, 0)};
  works.back().wait();
  for (const auto& work : works) expect(work.done(), "works are done in their order (rule 1)");
  expect(queue.pending() == 0, "none is left");
  return results;
}

void tell(GangContext& gang, const std::string& what) { gang.rendezvous().set(what, "1"); }
void await(GangContext& gang, const std::string& what) {
  gang.rendezvous().get(what, troupe::test::kGuard);
}

template <class Error, class Call>
std::string text_thrown(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("works of a queue give what the communicator's calls give, in their order",
          "[train][collective][work]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(1), ForkedGang::on_one_node(3), ForkedGang::on_nodes(4, 2));
  CHECK(failures(gang.run([](GangContext& context) {
          const auto comm = make_host_communicator(context, small_chunks());
          const auto expected = by_calls(*comm);
          expect(by_works(*comm) == expected, "the same results");
          expect(by_calls(*comm) == expected, "calls once the queue is gone");
        })) == "");
}

TEST_CASE("a rank computes while its work waits for the others, and asks with a deadline",
          "[train][collective][work]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          const auto comm = make_host_communicator(context);
          WorkQueue queue(*comm);
          float x = 1, y = 2;
          if (context.rank() == 1) await(context, "asked");
          const auto first = queue.all_reduce(&x, 1, kFloat);
          const auto second = queue.all_reduce(&y, 1, kFloat);
          if (context.rank() == 0) {
            expect(!second.done(), "rank 1 has not begun it");
            std::string late;
            const auto asks = [&] { second.wait_for(std::chrono::milliseconds(20)); };
            do {
              late = text_thrown<TimedOut>(asks);
            } while (late.find("its turn has not come") != std::string::npos);
            expect(late ==
                       "all_reduce of 1 float32 (sum), work 1 of its queue is not over after 20 "
                       "ms, and goes on; its turn comes after all_reduce of 1 float32 (sum), "
                       "work 0 of its queue",
                   late);
            tell(context, "asked");
          }
          second.wait_for(troupe::test::kGuard);
          expect(first.done() && x == 2 && y == 4, "the sums");
          queue.wait_all();
          comm->all_reduce(std::span(&x, 1));
          expect(x == 4, "the communicator takes calls again");
        })) == "");
}

TEST_CASE("who waits for ever for a work waits until the other ranks have come",
          "[train][collective][work]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          constexpr auto kForEver = std::chrono::milliseconds::max();
          const auto comm =
              make_host_communicator(context, {.timeout = kForEver, .warn_after = kForEver});
          WorkQueue queue(*comm);
          float x = 1;
          if (context.rank() == 1) await(context, "waits");
          const auto work = queue.all_reduce(&x, 1, kFloat);
          auto end = std::async(std::launch::async, [&] { work.wait_for(kForEver); });
          if (context.rank() == 0) {
            const auto early = end.wait_for(std::chrono::milliseconds(50));
            tell(context, "waits");
            expect(early == std::future_status::timeout, "rank 1 has not begun the work");
          }
          end.get();
          expect(x == 2, "the sum");
        })) == "");
}

TEST_CASE("a work, and all behind it, fail where a rank dies",
          "[train][collective][work][failure]") {
  const auto outcomes = ForkedGang::on_one_node(3).run([](GangContext& context) {
    const auto comm = make_host_communicator(context);
    comm->barrier();
    if (context.rank() == 2) std::raise(SIGKILL);
    WorkQueue queue(*comm);
    float x = 1, y = 1;
    const auto first = queue.all_reduce(&x, 1, kFloat), second = queue.all_reduce(&y, 1, kFloat);
    const auto why = text_thrown<GangBroken>([&] { first.wait(); });
    expect(text_thrown<GangBroken>([&] { second.wait(); }) == why, "the same error (rule 3)");
    expect(text_thrown<GangBroken>([&] { queue.wait_all(); }) == why, "and again");
    const auto third = queue.all_reduce(&x, 1, kFloat);
    third.wait();
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO(outcome.message);
    CHECK(outcome.type == "GangBroken");
    CHECK_THAT(outcome.message, Contains("rank 2"));
  }
}

TEST_CASE("an exception that leaves the function with a queue ends the communicator for all",
          "[train][collective][work][failure]") {
  const bool is_pending = GENERATE(true, false);
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  CAPTURE(is_pending, gang.node_ranks);
  const auto outcomes = gang.run([is_pending](GangContext& context) {
    const Leaving leaving(context, 1);
    const auto comm = make_host_communicator(context);
    WorkQueue queue(*comm);
    float x = 1;
    queue.all_reduce(&x, 1, kFloat).wait();
    if (context.rank() == 0) {
      if (is_pending) queue.all_reduce(&x, 1, kFloat);
      throw std::runtime_error("a fault of this rank");
    }
    await_leaving(context);
    queue.all_reduce(&x, 1, kFloat);  // rank 0 may have brought its part of this one
    queue.all_reduce(&x, 1, kFloat).wait();
  });
  CHECK(outcomes[0].message == "a fault of this rank");
  INFO(outcomes[1].message);
  CHECK(outcomes[1].type == "GangBroken");
  CHECK_THAT(outcomes[1].message,
             Contains("rank 0 ended the communicator: an exception left the function"));
}

TEST_CASE("arguments that cannot be begin no work, and works that differ fail on all ranks",
          "[train][collective][work]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    const auto comm = make_host_communicator(context);
    WorkQueue queue(*comm);
    float x = 1;
    int whole = 1;
    const auto null =
        text_thrown<std::invalid_argument>([&] { queue.all_reduce(nullptr, 1, kFloat); });
    expect(null == "all_reduce: a null buffer for 1 elements of float32", null);
    const auto average = text_thrown<std::invalid_argument>(
        [&] { queue.all_reduce(&whole, 1, DataType::Int32, ReduceOp::Average); });
    expect(average.find("an average of int32 would be rounded") != std::string::npos, average);
    const auto root =
        text_thrown<std::invalid_argument>([&] { queue.broadcast(&x, 1, kFloat, 2); });
    expect(root == "broadcast: root 2 is none of the ranks 0 to 1", root);
    expect(queue.pending() == 0, "none was begun");
    const auto work = context.rank() == 0 ? queue.all_reduce(&x, 1, kFloat) : queue.barrier();
    work.wait();
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.type == "invalid_argument");
    CHECK_THAT(outcome.message, Contains("all_reduce of 1 float32") && Contains("barrier"));
  }
}

TEST_CASE("a queue that ends waits for its works, which may outlive it",
          "[train][collective][work]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          const auto comm = make_host_communicator(context);
          float x = 1;
          std::optional<Work> work;
          {
            WorkQueue queue(*comm);
            work = queue.all_reduce(&x, 1, kFloat);
          }
          expect(work->done() && x == 2, "it has waited");
          work->wait();
        })) == "");
}
