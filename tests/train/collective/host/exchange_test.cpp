#include <troupe/train/communicator.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "collective/host/host_options.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// What rank `from` has for rank `to` at index i.
std::int32_t value(int from, int to, std::size_t i) {
  return from * 1'000'000 + to * 100'000 + static_cast<int>(i % 99'991);
}

std::vector<std::int32_t> message(int from, int to, std::size_t count) {
  std::vector<std::int32_t> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = value(from, to, i);
  return data;
}

void check_all_to_all(Communicator& comm, std::size_t count) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::int32_t> in;
  for (int to = 0; to < comm.size(); ++to) {
    const auto part = message(comm.rank(), to, count);
    in.insert(in.end(), part.begin(), part.end());
  }
  std::vector<std::int32_t> out(count * ranks, -1);
  comm.all_to_all(in.data(), out.data(), count, DataType::Int32);
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t i = 0; i < count; ++i) {
      expect(out[from * count + i] == value(static_cast<int>(from), comm.rank(), i), [&] {
        return fmt::format("all_to_all of {}: element {} from rank {}", count, i, from);
      });
    }
  }
}

/// Every pair of ranks, in both directions; of each pair, the lower rank sends first.
void check_messages(Communicator& comm, std::size_t count) {
  for (int low = 0; low < comm.size(); ++low) {
    for (int high = low + 1; high < comm.size(); ++high) {
      if (comm.rank() != low && comm.rank() != high) continue;
      const int other = comm.rank() == low ? high : low;
      const auto mine = message(comm.rank(), other, count);
      std::vector<std::int32_t> theirs(count, -1);
      if (comm.rank() == low) comm.send(std::span(mine), other);
      comm.recv(std::span(theirs), other);
      if (comm.rank() == high) comm.send(std::span(mine), other);
      expect(theirs == message(other, comm.rank(), count),
             fmt::format("{} numbers from rank {}", count, other));
    }
  }
}

void check_sum(Communicator& comm, int expected) {
  std::int32_t x = comm.rank() + 1;
  comm.all_reduce(std::span(&x, 1));
  expect(x == expected, fmt::format("the sum of {} ranks is {}, not {}", comm.size(), expected, x));
}

int count_of(const std::vector<Outcome>& outcomes, const std::string& type) {
  int count = 0;
  for (const auto& outcome : outcomes) count += outcome.type == type ? 1 : 0;
  return count;
}

auto gangs() {
  return std::vector{ForkedGang::on_one_node(1), ForkedGang::on_one_node(2),
                     ForkedGang::on_one_node(4), ForkedGang::on_nodes(2, 2),
                     ForkedGang::on_nodes(4, 2), ForkedGang::on_nodes(3, 3)};
}

}  // namespace

TEST_CASE("all_to_all gives every rank its part of every other's",
          "[train][collective][exchange]") {
  const auto gang = GENERATE(from_range(gangs()));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context, small_chunks());
          for (std::size_t count : {0, 1, 7, 1000, 5003, 200'003}) check_all_to_all(*comm, count);
          comm->barrier();
          check_all_to_all(*comm, 33);
        })) == "");
}

TEST_CASE("messages between any two ranks arrive whole and in order",
          "[train][collective][exchange]") {
  const auto gang = GENERATE(from_range(gangs()));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          for (std::size_t count : {0, 1, 7, 1000, 300'007}) check_messages(*comm, count);
          comm->barrier();
          check_messages(*comm, 5);
        })) == "");
}

TEST_CASE("a rank may end once its messages have been sent", "[train][collective][exchange]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          std::vector<std::int32_t> data(1'000);
          for (int i = 0; i < 20; ++i) {
            if (context.rank() == 0) comm->send(std::span(data), 1);
            if (context.rank() == 1) comm->recv(std::span(data), 0);
          }
        })) == "");
}

TEST_CASE("a message to no rank, or to oneself, is refused and changes nothing",
          "[train][collective][exchange]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          std::int32_t x = context.rank();
          const auto refused = [](auto call, const std::string& text) {
            try {
              call();
            } catch (const std::invalid_argument& error) {
              return error.what() == text;
            }
            return false;
          };
          const auto self = context.rank();
          expect(refused([&] { comm->send(std::span(&x, 1), 2); },
                         "send: rank 2 is none of the ranks 0 to 1"),
                 "rank 2");
          expect(refused([&] { comm->recv(std::span(&x, 1), -1); },
                         "recv: rank -1 is none of the ranks 0 to 1"),
                 "-1");
          expect(refused([&] { comm->recv(std::span(&x, 1), self); },
                         fmt::format("recv: rank {} is this rank itself", self)),
                 "itself");
          expect(refused([&] { comm->split(-2, 0); },
                         "split: color -2 is negative; kNoColor (-1) is for ranks without a new "
                         "communicator"),
                 "a negative color");
          check_messages(*comm, 3);
        })) == "");
}

TEST_CASE("messages that do not fit are reported to both sides with both",
          "[train][collective][exchange][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    std::vector<float> data(8);
    if (context.rank() == 0) comm->send(std::span(data).first(7), 1);
    if (context.rank() == 1) comm->recv(std::span(data), 0);
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.type << " " << outcome.message);
    CHECK(outcome.type == "invalid_argument");
    CHECK_THAT(outcome.message, Contains("rank 0 send of 7 float32 to rank 1, message 0") &&
                                    Contains("rank 1 recv of 8 float32 from rank 0, message 0"));
  }
}

TEST_CASE("two ranks that send to each other first are told",
          "[train][collective][exchange][failure]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    float x = 1;
    comm->send(std::span(&x, 1), 1 - context.rank());
  });
  CHECK(count_of(outcomes, "invalid_argument") == 2);
}

TEST_CASE("an all_to_all of different sizes is reported with both sides",
          "[train][collective][exchange][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    std::vector<float> in(20), out(20);
    comm->all_to_all(in.data(), out.data(), context.rank() == 0 ? 7 : 8, DataType::Float32);
  });
  REQUIRE(count_of(outcomes, "invalid_argument") >= 1);
  for (const auto& outcome : outcomes) {
    CHECK_THAT(outcome.message,
               Contains("all_to_all of 7 float32") && Contains("all_to_all of 8 float32"));
  }
}

TEST_CASE("a message nobody sends names the rank that did not come",
          "[train][collective][exchange][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  const bool connected = GENERATE(false, true);
  std::chrono::milliseconds timeout(600);
  const auto call = [&] {
    return fmt::format("rank 1 waited {:.1f} s in recv of 1 float32 from rank 0, message",
                       std::chrono::duration<double>(timeout).count());
  };
  const auto outcomes = run_with_longer_waits(
      gang, timeout,
      [&](GangContext& context) {
        const Leaving leaving(context, 0);
        auto comm = make_host_communicator(context, {.timeout = timeout});
        if (connected) check_messages(*comm, 1);
        float x = 1;
        if (context.rank() == 1) return comm->recv(std::span(&x, 1), 0);
        await_leaving(context);
        expect(context.broken().load() == 0, "a whole gang");
      },
      [&](const auto& all) { return all[1].message.find(call()) != std::string::npos; });
  CHECK(outcomes[1].type == "TimedOut");
  CHECK_THAT(outcomes[1].message, Contains(call()) && Contains("rank 0 did not come"));
  CHECK(failures({outcomes[0]}) == "");
}

TEST_CASE("a rank that is killed ends a message that waits for it",
          "[train][collective][exchange][failure]") {
  auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  gang.announce_deaths = GENERATE(true, false);
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    check_messages(*comm, 10);
    float x = 1;
    if (context.rank() == 0) ::kill(::getpid(), SIGKILL);
    comm->recv(std::span(&x, 1), 0);
  });
  INFO(outcomes[1].message);
  CHECK(outcomes[1].type == "GangBroken");
  CHECK_THAT(outcomes[1].message, Contains("rank 0") && Contains("recv of 1 float32 from rank 0"));
}

TEST_CASE("split makes communicators of the ranks of one color, in the order of their keys",
          "[train][collective][split]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(4), ForkedGang::on_nodes(4, 2), ForkedGang::on_nodes(4, 4));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context, small_chunks());
          const int rank = comm->rank();
          // Ranks 0, 2 and 1, 3, each pair the other way round; then all but rank 3; then the
          // halves of that again.
          auto pair = comm->split(rank % 2, -rank);
          expect(pair->size() == 2 && pair->rank() == (rank < 2 ? 1 : 0), "the order of keys");
          check_sum(*pair, 3);
          std::int32_t x = rank;
          pair->broadcast(std::span(&x, 1), 0);
          expect(x == 2 + rank % 2, "rank 0 of a pair is its higher rank");
          auto three = comm->split(rank == 3 ? Communicator::kNoColor : 7, rank);
          expect((three == nullptr) == (rank == 3), "no communicator without a color");
          if (three) {
            check_sum(*three, 6);
            check_all_to_all(*three, 5000);
            check_messages(*three, 1000);
            auto again = three->split(three->rank() == 0 ? 0 : 1, 0);
            expect(again->size() == (rank == 0 ? 1 : 2), "a part of a part");
            check_sum(*again, rank == 0 ? 1 : 3);
          }
          pair->barrier();
          check_sum(*comm, 10);
        })) == "");
}

TEST_CASE("a part of a gang works while another one has failed",
          "[train][collective][split][failure]") {
  CHECK(failures(ForkedGang::on_one_node(4).run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          auto part = comm->split(comm->rank() / 2, 0);
          if (comm->rank() == 0) part->abort("no more");
          bool failed = false;
          try {
            if (comm->rank() > 0) part->barrier();
          } catch (const GangBroken&) {
            failed = true;
          }
          expect(failed == (comm->rank() == 1), "the first half, and no other, has failed");
          check_sum(*comm, 10);
        })) == "");
}
