#include "head/exit_records.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"

using namespace troupe;
using namespace troupe::runtime;
using troupe::head::ExitRecords;

namespace {

KeptReply reply(ProcessId caller, std::uint64_t call, std::size_t bytes = 8) {
  return {.caller = caller,
          .call = call,
          .outcome = detail::Payload{.bytes = std::string(bytes, 'x'), .refs = {}}};
}

ExitRecords::End end_with(std::vector<KeptReply> replies) {
  return {.how = {.kind = Failure::Kind::ProcessDied},
          .calls = {.callers = {}, .replies = std::move(replies)}};
}

}  // namespace

TEST_CASE("each caller of a process that has ended is told of its own replies, and of no other's",
          "[runtime][head][replies]") {
  ExitRecords records;
  records.process_ended(9_process,
                        end_with({reply(1_process, 5), reply(2_process, 1), reply(1_process, 7)}));
  const auto first = records.process(9_process)->death_for(1_process).replies;
  REQUIRE(first.size() == 2);
  CHECK(first[0].call == 5);
  CHECK(first[1].call == 7);
  CHECK(records.process(9_process)->death_for(2_process).replies.size() == 1);
  CHECK(records.process(9_process)->death_for(3_process).replies.empty());
}

TEST_CASE("of the replies that ended processes left, the head keeps the last ones up to its limit",
          "[runtime][head][replies]") {
  ExitRecords records;
  const auto part = ExitRecords::kMostReplyBytes / 4;
  for (ProcessId process = 1_process; process <= 6_process; ++process)
    records.process_ended(process, end_with({reply(1_process, 1, part)}));
  const auto has_replies = [&](ProcessId process) {
    return !records.process(process)->death_for(1_process).replies.empty();
  };
  CHECK(!has_replies(3_process));
  CHECK(has_replies(4_process));
  CHECK(has_replies(6_process));
  CHECK(records.process(1_process)->how.kind == Failure::Kind::ProcessDied);
  records.process_ended(7_process,
                        end_with({reply(1_process, 1, 2 * ExitRecords::kMostReplyBytes)}));
  CHECK(!has_replies(6_process));
  CHECK(has_replies(7_process));
}
