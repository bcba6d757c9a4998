#include <troupe/train/communicator.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

void reduce_for_ever(Communicator& comm, std::size_t count) {
  std::vector<float> data(count);
  for (;;) comm.all_reduce(std::span(data));
}

/// Everybody reduces; the last rank kills itself in its tenth call.
void die_on_the_way(GangContext& gang, std::size_t count) {
  auto comm = make_host_communicator(gang);
  std::vector<float> data(count);
  for (int i = 0; i < 10; ++i) comm->all_reduce(std::span(data));
  if (gang.rank() == gang.size() - 1) ::kill(::getpid(), SIGKILL);
  reduce_for_ever(*comm, count);
}

/// "waited 0.8 s in "
std::string waited(std::chrono::milliseconds time) {
  return fmt::format("waited {:.1f} s in ", std::chrono::duration<double>(time).count());
}

/// Each rank but this one says so of it, and of no other.
bool is_missed_by_all(const std::vector<Outcome>& outcomes, int absent) {
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    if (static_cast<int>(r) != absent &&
        outcomes[r].message.find(fmt::format("; rank {} did not come", absent)) ==
            std::string::npos)
      return false;
  }
  return true;
}

void check_that_the_others_left(const std::vector<Outcome>& outcomes, const std::string& why) {
  CHECK(outcomes.back().signal == SIGKILL);
  for (std::size_t r = 0; r + 1 < outcomes.size(); ++r) {
    INFO("rank " << r << ": " << outcomes[r].message);
    CHECK(outcomes[r].type == "GangBroken");
    CHECK_THAT(outcomes[r].message, Contains(why) && Contains("all_reduce"));
  }
}

}  // namespace

TEST_CASE("the others leave a collective when a rank is killed, and say which",
          "[train][collective][failure]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_one_node(4), ForkedGang::on_nodes(4, 2));
  const std::size_t count = GENERATE(1, 100'000);
  const auto last = "rank " + std::to_string(gang.node_ranks.size() - 1);
  check_that_the_others_left(
      gang.run([&](GangContext& context) { die_on_the_way(context, count); }), last);
}

TEST_CASE("ranks of one node notice a killed rank by themselves", "[train][collective][failure]") {
  auto gang = ForkedGang::on_one_node(3);
  gang.announce_deaths = false;
  check_that_the_others_left(gang.run([](GangContext& context) { die_on_the_way(context, 1); }),
                             "rank 2");
}

TEST_CASE("ranks of other nodes notice a killed rank by its connections",
          "[train][collective][failure][ring]") {
  auto gang = ForkedGang::on_nodes(3, 3);
  gang.announce_deaths = false;
  const auto outcomes = gang.run([](GangContext& context) { die_on_the_way(context, 1); });
  CHECK(outcomes[0].type == "GangBroken");
  CHECK(outcomes[1].type == "GangBroken");
}

TEST_CASE("ranks of other nodes are told which rank was killed, and where they waited",
          "[train][collective][failure][ring]") {
  // Rank 3 is not the first of its node: no connection of the ring is its own.
  auto gang = ForkedGang::on_nodes(4, 2);
  gang.announce_deaths = false;
  const auto outcomes = gang.run([](GangContext& context) { die_on_the_way(context, 1); });
  for (std::size_t r = 0; r < 3; ++r) {
    INFO("rank " << r << ": " << outcomes[r].message);
    CHECK(outcomes[r].type == "GangBroken");
    CHECK_THAT(outcomes[r].message, Contains("rank 3 (pid ") && Contains("has ended") &&
                                        Contains("in all_reduce of 1 float32 (sum), call ") &&
                                        Contains(" s)"));
  }
}

TEST_CASE("of several nodes, the rank that does not come is named, not one that waits for it",
          "[train][collective][failure][ring]") {
  const auto gang = GENERATE(ForkedGang::on_nodes(4, 2), ForkedGang::on_nodes(6, 3));
  const int late = static_cast<int>(gang.node_ranks.size()) - 1;
  std::chrono::milliseconds timeout(800);
  const auto outcomes = run_with_longer_waits(
      gang, timeout,
      [&](GangContext& context) {
        const Leaving leaving(context, late);
        auto comm = make_host_communicator(context, {.timeout = timeout});
        comm->barrier();
        if (context.rank() == late) return await_leaving(context);
        float x = 1;
        comm->all_reduce(std::span(&x, 1));
      },
      [&](const auto& all) { return is_missed_by_all(all, late); });
  for (int r = 0; r < late; ++r) {
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    INFO("rank " << r << ": " << outcome.type << " " << outcome.message);
    CHECK((outcome.type == "TimedOut" || outcome.type == "GangBroken"));
    CHECK_THAT(outcome.message,
               Contains(waited(timeout) + "all_reduce of 1 float32 (sum), call 2; rank " +
                        std::to_string(late) + " did not come"));
  }
}

TEST_CASE("a rank that never starts is named on every node", "[train][collective][failure][ring]") {
  const auto gang = GENERATE(ForkedGang::on_nodes(3, 3), ForkedGang::on_nodes(4, 2));
  const int absent = GENERATE(0, 1);
  std::chrono::milliseconds timeout(800);
  const auto outcomes = run_with_longer_waits(
      gang, timeout,
      [&](GangContext& context) {
        if (context.rank() != absent) make_host_communicator(context, {.timeout = timeout});
      },
      [&](const auto& all) { return is_missed_by_all(all, absent); });
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    if (static_cast<int>(r) == absent) continue;
    INFO("rank " << r << ": " << outcomes[r].type << " " << outcomes[r].message);
    CHECK((outcomes[r].type == "TimedOut" || outcomes[r].type == "GangBroken"));
    CHECK_THAT(outcomes[r].message, Contains(waited(timeout) + "start of the communicator; rank " +
                                             std::to_string(absent) + " did not come"));
  }
}

TEST_CASE("a rank that does not come is named at the deadline", "[train][collective][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 3));
  std::chrono::milliseconds timeout(600);
  const auto is_named = [](const Outcome& outcome) {
    return outcome.type == "TimedOut" &&
           outcome.message.find("; rank 1 did not come") != std::string::npos &&
           outcome.message.find("all_reduce of 1 float32 (sum)") != std::string::npos;
  };
  const auto outcomes = run_with_longer_waits(
      gang, timeout,
      [&](GangContext& context) {
        const Leaving leaving(context, 1);
        auto comm = make_host_communicator(context, {.timeout = timeout});
        comm->barrier();
        if (context.rank() == 1) {
          await_leaving(context);
          return expect(context.broken().load() == 0, "nobody breaks the gang");
        }
        float x = 1;
        comm->all_reduce(std::span(&x, 1));
      },
      [&](const auto& all) { return is_named(all[0]) || is_named(all[2]); });
  for (int r : {0, 2}) {
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    INFO("rank " << r << ": " << outcome.type << " " << outcome.message);
    CHECK((outcome.type == "TimedOut" || outcome.type == "GangBroken"));
  }
  CHECK((is_named(outcomes[0]) || is_named(outcomes[2])));
  CHECK(failures({outcomes[1]}) == "");
}

TEST_CASE("a rank that never starts is named at the deadline", "[train][collective][failure]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    if (context.rank() == 1) return;
    make_host_communicator(context, {.timeout = std::chrono::milliseconds(300)});
  });
  CHECK(outcomes[0].type == "TimedOut");
  CHECK_THAT(outcomes[0].message,
             Contains("waited 0.3 s in start of the communicator; rank 1 did not come"));
}

TEST_CASE("different calls at the same place are reported with both sides",
          "[train][collective][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    std::vector<float> data(10);
    comm->barrier();
    if (context.rank() == 0)
      comm->all_reduce(std::span(data).first(7));
    else
      comm->all_reduce(std::span(data).first(8), ReduceOp::Max);
  });
  int named = 0;
  for (const auto& outcome : outcomes) {
    INFO(outcome.type << " " << outcome.message);
    CHECK(outcome.threw);
    if (outcome.type != "invalid_argument") continue;
    ++named;
    CHECK_THAT(outcome.message, Contains("all_reduce of 7 float32 (sum), call 2") &&
                                    Contains("all_reduce of 8 float32 (max), call 2") &&
                                    Contains("rank 0") && Contains("rank 1"));
  }
  CHECK(named >= 1);
}

TEST_CASE("abort frees the other ranks with its reason, and later calls fail alike",
          "[train][collective][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(4, 2));
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    if (context.rank() == 1) {
      comm->abort("out of cheese");
      return;
    }
    try {
      reduce_for_ever(*comm, 100);
    } catch (const GangBroken& first) {
      try {
        comm->barrier();
      } catch (const GangBroken& second) {
        expect(std::string(first.what()) == second.what(), "the same error again");
        throw;
      }
    }
  });
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    if (r == 1) continue;
    INFO("rank " << r << ": " << outcomes[r].message);
    CHECK(outcomes[r].type == "GangBroken");
    if (outcomes.size() == 3) CHECK_THAT(outcomes[r].message, Contains("out of cheese"));
  }
}

TEST_CASE("a rank that ends after its last call breaks nobody's collective",
          "[train][collective][failure]") {
  auto gang = ForkedGang::on_one_node(4);
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    std::vector<float> data(5000);
    for (int i = 0; i < 50; ++i) comm->all_reduce(std::span(data));
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("a rank that closes its communicator leaves nobody waiting for it",
          "[train][collective][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(4, 2));
  const int last = static_cast<int>(gang.node_ranks.size()) - 1;
  const auto outcomes = gang.run([last](GangContext& context) {
    const Leaving leaving(context, last);
    auto comm = make_host_communicator(context);
    float x = 1;
    comm->all_reduce(std::span(&x, 1));
    if (context.rank() != last) return comm->all_reduce(std::span(&x, 1));
    comm.reset();
    await_leaving(context);
  });
  for (int r = 0; r < last; ++r) {
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    INFO("rank " << r << ": " << outcome.message);
    CHECK(outcome.type == "GangBroken");
    CHECK_THAT(outcome.message,
               Contains("rank " + std::to_string(last) + " has closed its communicator"));
  }
  CHECK(failures({outcomes.back()}) == "");
}

TEST_CASE("a message from a rank that has closed its communicator is not waited for",
          "[train][collective][failure]") {
  const bool connected = GENERATE(false, true);
  const auto outcomes = ForkedGang::on_one_node(2).run([connected](GangContext& context) {
    const Leaving leaving(context, 1);
    auto comm = make_host_communicator(context);
    float x = 1;
    if (context.rank() == 0) {
      for (int message = connected ? 0 : 1; message < 2; ++message) comm->recv(std::span(&x, 1), 1);
    } else {
      if (connected) comm->send(std::span(&x, 1), 0);
      comm.reset();
      await_leaving(context);
    }
  });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("rank 1 has closed its communicator"));
  CHECK(failures({outcomes[1]}) == "");
}

TEST_CASE("who has closed its communicator after its last call breaks nobody's",
          "[train][collective][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(4, 2));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          auto part = comm->split(context.rank() == 1 ? Communicator::kNoColor : 0, 0);
          float x = 1;
          comm->all_reduce(std::span(&x, 1));
          comm.reset();
          if (!part) return;
          eventually([] { return false; }, std::chrono::seconds(1));  // rank 1 is gone by then
          for (int i = 0; i < 3; ++i) part->all_reduce(std::span(&x, 1));
        })) == "");
}

TEST_CASE("arguments that cannot be are refused and change nothing", "[train][collective]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          auto refused = [](auto call) {
            try {
              call();
            } catch (const std::invalid_argument&) {
              return true;
            }
            return false;
          };
          std::vector<std::int32_t> whole(4, 2);
          expect(refused([&] { comm->all_reduce(std::span(whole), ReduceOp::Average); }),
                 "no average of int32");
          expect(refused([&] { comm->broadcast(std::span(whole), 2); }), "no root 2 of two ranks");
          expect(refused([&] { comm->all_reduce(nullptr, 1, DataType::Float32, ReduceOp::Sum); }),
                 "no null buffer");
          expect(refused([&] { make_host_communicator(context, {.chunk_bytes = 1}); }),
                 "no chunk of one byte");
          comm->all_reduce(std::span(whole));
          expect(whole[0] == 4, "the communicator still works");
        })) == "");
}

TEST_CASE(
    "a communicator that two threads enter at once refuses one of them, names both calls, and goes "
    "on",
    "[train][collective]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          if (context.rank() == 0) {
            const auto enter = [&] {
              try {
                comm->barrier();
              } catch (const std::logic_error& e) {
                context.rendezvous().set("refused", e.what());
              }
            };
            std::thread other(enter);
            enter();
            other.join();
          } else {
            const auto why = context.rendezvous().get("refused", troupe::test::kGuard);
            expect(
                why.find("rank 0 called barrier while another of its threads is in barrier") == 0,
                "both calls, it is " + why);
            comm->barrier();
          }
          std::vector<float> data(10'000, 1);
          comm->all_reduce(std::span(data));
          expect(data.front() == 2 && data.back() == 2, "the communicator still works");
        })) == "");
}

TEST_CASE("no file of a communicator is left behind", "[train][collective]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          auto buffer = comm->allocate(1 << 16);
          std::ifstream maps("/proc/self/maps");
          int shared = 0;
          for (std::string line; std::getline(maps, line);) {
            if (line.find("rw-s") == std::string::npos ||
                line.find("/dev/zero") != std::string::npos)
              continue;
            ++shared;
            expect(line.find("/memfd:") != std::string::npos &&
                       line.find("(deleted)") != std::string::npos,
                   "memory without a name: " + line);
          }
          expect(shared == 2, "two shared mappings");
          comm->barrier();
        })) == "");
}
