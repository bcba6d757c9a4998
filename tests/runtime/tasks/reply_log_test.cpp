#include "calls/deaths/reply_log.hpp"

#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "../../support/rounds.hpp"
#include "calls/execution_record.hpp"

using namespace troupe;
using namespace troupe::runtime;
using namespace std::chrono_literals;

namespace {

struct alignas(64) Memory {
  std::byte bytes[ReplyLog::bytes()];
};

/// A log in memory of this process.
struct Kept {
  std::unique_ptr<Memory> memory = std::make_unique<Memory>();
  ReplyLog log{memory->bytes};

  ReplyPlace keep(ProcessId caller, std::uint64_t call, std::size_t bytes = 8) {
    return log.keep(caller, call, value(std::string(bytes, 'x')), 5us);
  }
  std::vector<std::uint64_t> left() const {
    std::vector<std::uint64_t> calls;
    for (const auto& reply : ReplyLog::read(memory->bytes)) calls.push_back(reply.call);
    return calls;
  }
  static Outcome value(std::string bytes) {
    return detail::Payload{.bytes = std::move(bytes), .refs = {}};
  }
};

std::string bytes_of(const KeptReply& reply) {
  return std::get<detail::Payload>(reply.outcome).bytes;
}

}  // namespace

TEST_CASE("the replies that a killed process kept are read whole and in order (3)",
          "[runtime][tasks][replies]") {
  auto record = ExecutionRecord::create();
  REQUIRE(record);
  const Failure thrown{.kind = Failure::Kind::Task,
                       .message = "no such row",
                       .type = "std::out_of_range",
                       .where = "work, process 7",
                       .signal = 3,
                       .exit_code = -1};
  const auto child = ::fork();
  if (child == 0) {
    auto adopted = ExecutionRecord::adopt(record->descriptor());
    auto* mine = std::get_if<ExecutionRecord>(&adopted);
    if (!mine) _exit(1);
    ReplyLog log(mine->reply_memory());
    const auto first = log.keep(7_process, 1, Kept::value("had"), 0us);
    log.keep(7_process, 2, Kept::value(std::string(5000, 'v')), 20us);
    log.keep(8_process, 1, thrown, 30us);
    log.keep(7_process, 3, Kept::value(""), 0us);
    log.arrived(7_process, first);
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto replies = record->read().replies;
  REQUIRE(replies.size() == 3);
  CHECK(replies[0].caller == 7_process);
  CHECK(replies[0].call == 2);
  CHECK(replies[0].run_time == 20us);
  CHECK(bytes_of(replies[0]) == std::string(5000, 'v'));
  CHECK(replies[1].caller == 8_process);
  const auto failure = std::get<Failure>(replies[1].outcome);
  CHECK(failure.kind == thrown.kind);
  CHECK(failure.message == thrown.message);
  CHECK(failure.type == thrown.type);
  CHECK(failure.where == thrown.where);
  CHECK(failure.signal == thrown.signal);
  CHECK(failure.exit_code == thrown.exit_code);
  CHECK(replies[2].call == 3);
  CHECK(bytes_of(replies[2]).empty());
}

TEST_CASE("a reply stays in the log until its caller has it or has ended (2)",
          "[runtime][tasks][replies]") {
  Kept kept;
  const auto first = kept.keep(1_process, 11);
  kept.keep(2_process, 21);
  const auto third = kept.keep(1_process, 12);
  CHECK(first < third);
  kept.log.arrived(1_process, 0);
  CHECK(kept.left() == std::vector<std::uint64_t>{11, 21, 12});
  kept.log.arrived(1_process, third);  // the second one still keeps the room of what follows it
  CHECK(kept.left() == std::vector<std::uint64_t>{21, 12});
  kept.log.forget(2_process);
  CHECK(kept.left().empty());
  const auto fourth = kept.keep(2_process, 22);
  CHECK(kept.left() == std::vector<std::uint64_t>{22});
  kept.log.arrived(2_process, fourth);
  CHECK(kept.left().empty());
}

TEST_CASE("what the log cannot hold is not kept, and its room comes back with acknowledgements",
          "[runtime][tasks][replies]") {
  Kept kept;
  const auto ref = detail::Payload{.bytes = "x", .refs = {detail::Object::pending(1)}};
  CHECK(kept.log.keep(1_process, 1, ref, 0us) == 0);
  CHECK(kept.keep(1_process, 2, ReplyLog::kMostBytes + 1) == 0);
  CHECK(kept.log.keep(1_process, 2, Failure{.message = std::string(ReplyLog::kMostBytes, 'x')},
                      0us) == 0);
  for (std::uint64_t round = 0; round < 50; ++round) {
    ReplyPlace last = 0;
    std::vector<std::uint64_t> calls;
    for (std::uint64_t call = 1;; ++call) {
      const auto place = kept.keep(1_process, call, 100 + 997 * (call % 8));
      if (place == 0) break;
      REQUIRE(place > last);
      last = place;
      calls.push_back(call);
    }
    REQUIRE(calls.size() > 20);
    REQUIRE(kept.left() == calls);
    kept.log.arrived(1_process, last);
    REQUIRE(kept.left().empty());
  }
}

TEST_CASE(
    "a log that its process has overwritten is read to what can be believed, and no further (3)",
    "[runtime][tasks][replies]") {
  for (unsigned round = 0; round < troupe::test::rounds(2000); ++round) {
    const auto seed = troupe::test::first_seed() + round;
    CAPTURE(seed);
    std::mt19937 random(seed);
    Kept kept;
    for (std::uint64_t call = 1; call <= 40; ++call) {
      if (random() % 4 == 0) {
        kept.log.keep(1_process, call, Failure{.message = "thrown", .type = "type"}, 0us);
      } else {
        kept.keep(1_process, call, random() % 200);
      }
    }
    // Its words first: 128 bytes; then what stands in the log.
    for (unsigned strokes = 0; strokes < 1 + random() % 4; ++strokes) {
      const auto value = static_cast<std::uint64_t>(random()) << (random() % 33);
      const auto at = random() % (strokes == 0 ? 128 : 2048);
      std::memcpy(kept.memory->bytes + (at & ~7U), &value, sizeof value);
    }
    std::size_t bytes = 0;
    for (const auto& reply : ReplyLog::read(kept.memory->bytes)) {
      if (const auto* value = std::get_if<detail::Payload>(&reply.outcome))
        bytes += value->bytes.size();
    }
    REQUIRE(bytes <= ReplyLog::kRingBytes);
  }
}
