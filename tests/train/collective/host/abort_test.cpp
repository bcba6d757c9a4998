// Processes that live on where a communicator ends in the middle of a call, and make another one.
#include <troupe/train/communicator.hpp>
#include <troupe/train/work.hpp>

#include <algorithm>
#include <csignal>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "collective/holdings.hpp"
#include "collective/sub_gang.hpp"
#include "guard.hpp"
#include "process_stat.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using troupe::test::gone_within;
using troupe::test::kGuard;

namespace {

constexpr std::size_t kLarge = 200'000;  // of several chunks
constexpr auto kLimit = 3 * kGuard;      // so that ranks can say what they waited for in vain
constexpr int kWays = 3;                 // in which end_by ends a communicator

/// The first ranks of a gang as one of their own, for those whom the last ranks leave.
SubGang first_ranks(GangContext& whole, int size) {
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return {whole, members};
}

std::unique_ptr<Communicator> make(GangContext& gang, const std::string& name) {
  return make_host_communicator(gang, {.name = name, .timeout = kGuard});
}

void check_sums(Communicator& comm) {
  for (const std::size_t count : {std::size_t{1}, kLarge}) {
    std::vector<float> data(count, static_cast<float>(comm.rank() + 1));
    comm.all_reduce(std::span(data));
    const auto sum = static_cast<float>(comm.size() * (comm.size() + 1) / 2);
    expect(std::ranges::count(data, sum) == std::ssize(data), "the sum of 1 .. size");
  }
}

/// `before`: once other communicators have ended, since a process makes some things only once. A
/// thread that has been joined may be counted for a moment.
void expect_no_more_than(const Holdings& before, const std::string& when) {
  const auto is_more = [&](const Holdings& now) {
    return now.descriptors > before.descriptors || now.threads > before.threads ||
           now.mappings > before.mappings;
  };
  eventually([&] { return !is_more(holdings()); }, kGuard);
  const auto now = holdings();
  expect(!is_more(now), [&] {
    return fmt::format("{}: {} more descriptors, {} more threads, {} more mappings", when,
                       now.descriptors - before.descriptors, now.threads - before.threads,
                       now.mappings - before.mappings);
  });
}

/// Works the first of which waits for a rank that has not begun it.
class PendingWorks {
 public:
  explicit PendingWorks(Communicator& comm) : queue_(comm) {}
  /// -> the error of the last one. (Ranks of other nodes may come to the first before an abort
  /// is seen.)
  std::string wait() {
    return thrown_by<GangBroken>([&] { last_.wait(); });
  }

 private:
  std::vector<float> data_ = std::vector<float>(kLarge);
  float number_ = 0;
  WorkQueue queue_;
  Work first_ = queue_.all_reduce(data_.data(), data_.size(), DataType::Float32);
  Work last_ = queue_.all_reduce(&number_, 1, DataType::Float32);
};

void await_end_of(pid_t process) { expect(gone_within(process, kGuard), "the process has ended"); }

/// One rank ends a communicator for all, while no rank can come to the end of its call: another
/// rank in each round, in another way. -> the error of a rank that is told
std::string end_by(GangContext& gang, std::unique_ptr<Communicator> comm, int round) {
  const int way = round % kWays, ender = round % gang.size();
  const bool is_ender = gang.rank() == ender;
  if (way == 0) {  // it closes it, and the others wait in a call
    if (is_ender) return "";
    return thrown_by<GangBroken>([&] { check_sums(*comm); });
  }
  if (way == 1) {  // it aborts without a call of its own, and the others have works
    if (!is_ender) return PendingWorks(*comm).wait();
    comm->abort("enough");
    return "";
  }
  // It aborts while works of its own are pending; another rank comes once that is done.
  const auto aborted = fmt::format("aborted/{}", round);
  if (gang.rank() == (ender + 1) % gang.size()) gang.rendezvous().get(aborted, kGuard);
  PendingWorks works(*comm);
  if (is_ender) {
    comm->abort("enough");
    gang.rendezvous().set(aborted, "1");
  }
  return works.wait();
}

}  // namespace

TEST_CASE("a call after an abort fails, though every rank comes to it",
          "[train][collective][failure][abort]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(1), ForkedGang::on_one_node(3), ForkedGang::on_nodes(4, 2));
  const std::size_t count = GENERATE(std::size_t{1}, kLarge);
  CAPTURE(gang.node_ranks, count);
  CHECK(failures(gang.run([count](GangContext& context) {
          const auto comm = make(context, "aborted");
          check_sums(*comm);
          if (context.rank() == 0) {
            comm->abort("enough");
            context.rendezvous().set("aborted", "1");
          }
          context.rendezvous().get("aborted", kGuard);
          std::vector<float> data(count);
          const auto error = thrown_by<GangBroken>([&] { comm->all_reduce(std::span(data)); });
          if (context.node_count() == 1) expect_in(error, "rank 0 ended the communicator: enough");
          expect(thrown_by<GangBroken>([&] { comm->barrier(); }) == error, "the same error again");
        })) == "");
}

TEST_CASE("ranks make one communicator after another where each is ended in the middle of a call",
          "[train][collective][failure][abort]") {
  auto gang =
      GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_one_node(3), ForkedGang::on_nodes(4, 2));
  gang.limit = kLimit;
  CAPTURE(gang.node_ranks);
  CHECK(failures(gang.run([](GangContext& context) {
          Holdings after_each{};  // of the ways, the first of which make what a process has once
          for (int round = 0; round < 2 * kWays; ++round) {
            auto comm = make(context, fmt::format("round {}", round));
            check_sums(*comm);
            const auto error = end_by(context, std::move(comm), round);
            if (context.node_count() == 1 && !error.empty()) {
              expect_in(error, fmt::format("rank {} {}", round % context.size(),
                                           round % kWays == 0 ? "has closed its communicator"
                                                              : "ended the communicator: enough"));
            }
            if (round == kWays - 1) after_each = holdings();
            if (round >= kWays)
              expect_no_more_than(after_each, fmt::format("after round {}", round));
          }
          check_sums(*make(context, "last"));
          expect_no_more_than(after_each, "at the end");
        })) == "");
}

TEST_CASE("ranks that others leave by their death make a smaller communicator, down to one",
          "[train][collective][failure][abort]") {
  auto gang = GENERATE(ForkedGang::on_one_node(4), ForkedGang::on_nodes(4, 2));
  gang.announce_deaths = false;  // which would end the whole gang
  gang.limit = kLimit;
  CAPTURE(gang.node_ranks);
  const auto outcomes = gang.run([](GangContext& context) {
    Holdings after_first{};
    for (int size = context.size(); size > 1; --size) {
      auto left = first_ranks(context, size);
      {
        const auto comm = make(left, fmt::format("of {}", size));
        check_sums(*comm);
        const auto key = fmt::format("dies/{}", size);
        if (left.rank() == 0) await_end_of(std::stoi(left.rendezvous().get(key, kGuard)));
        PendingWorks works(*comm);
        if (left.rank() == size - 1) {
          left.rendezvous().set(key, std::to_string(::getpid()));
          std::raise(SIGKILL);
        }
        works.wait();
      }
      if (size == context.size()) after_first = holdings();
      expect_no_more_than(after_first, fmt::format("after {} ranks", size));
    }
    auto alone = first_ranks(context, 1);
    check_sums(*make(alone, "of one"));
    expect_no_more_than(after_first, "at the end");
  });
  CHECK(failures({outcomes[0]}) == "");
  for (std::size_t rank = 1; rank < outcomes.size(); ++rank) {
    INFO("rank " << rank << ": " << outcomes[rank].message);
    CHECK(outcomes[rank].signal == SIGKILL);
  }
}
