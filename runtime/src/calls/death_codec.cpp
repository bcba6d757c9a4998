#include "calls/death_codec.hpp"

#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

void write_reply(wire::Reply::Builder to, const KeptReply& reply) {
  to.setId(reply.call);
  to.setRunNs(static_cast<std::uint64_t>(reply.run_time.count()));
  if (const auto* failure = std::get_if<Failure>(&reply.outcome))
    return write_failure(to.initOutcome().initFailure(), *failure);
  const auto& bytes = std::get<detail::Payload>(reply.outcome).bytes;
  to.initOutcome().initValue().setData(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
}

/// Its value is plain, whatever else stands there.
KeptReply read_reply(wire::Reply::Reader from, ProcessId caller) {
  KeptReply reply{.caller = caller,
                  .call = from.getId(),
                  .run_time = std::chrono::nanoseconds(from.getRunNs()),
                  .outcome = {}};
  if (from.getOutcome().isFailure()) {
    reply.outcome = read_failure(from.getOutcome().getFailure());
    return reply;
  }
  const auto data = from.getOutcome().getValue().getData();
  reply.outcome = detail::Payload{
      .bytes = std::string(reinterpret_cast<const char*>(data.begin()), data.size()), .refs = {}};
  return reply;
}

}  // namespace

Death read_death(wire::HeadNotice::Reader tell, wire::Failure::Reader failure) {
  Death death(read_failure(failure));
  if (const auto calls = tell.getCalls(); calls.getKnown()) {
    death.calls = CallsSeen{.begun = calls.getBegun(), .finished = calls.getFinished()};
  }
  for (const auto reply : tell.getReplies()) death.replies.push_back(read_reply(reply, {}));
  return death;
}

void write_death(wire::HeadNotice::Builder tell, wire::Failure::Builder failure,
                 const Death& death) {
  write_failure(failure, death.how);
  if (!death.replies.empty()) {
    auto replies = tell.initReplies(static_cast<unsigned>(death.replies.size()));
    for (unsigned i = 0; i < replies.size(); ++i) write_reply(replies[i], death.replies[i]);
  }
  if (!death.calls) return;
  auto calls = tell.initCalls();
  calls.setKnown(true);
  calls.setBegun(death.calls->begun);
  calls.setFinished(death.calls->finished);
}

void write_callers(wire::ProcessExited::Builder to, const ExecutionRecord::Report& report) {
  to.setCallersKnown(report.complete);
  auto callers = to.initCallers(static_cast<unsigned>(report.callers.size()));
  for (unsigned i = 0; i < callers.size(); ++i) {
    callers[i].setKnown(true);
    callers[i].setCaller(report.callers[i].process.value());
    callers[i].setBegun(report.callers[i].calls.begun);
    callers[i].setFinished(report.callers[i].calls.finished);
  }
  if (report.replies.empty()) return;
  auto replies = to.initReplies(static_cast<unsigned>(report.replies.size()));
  for (unsigned i = 0; i < replies.size(); ++i) {
    replies[i].setCaller(report.replies[i].caller.value());
    write_reply(replies[i].initReply(), report.replies[i]);
  }
}

ExecutionRecord::Report read_callers(wire::ProcessExited::Reader from) {
  ExecutionRecord::Report report{.callers = {}, .complete = from.getCallersKnown()};
  for (auto caller : from.getCallers()) {
    report.callers.push_back(
        {.process = ProcessId(caller.getCaller()),
         .calls = {.begun = caller.getBegun(), .finished = caller.getFinished()}});
  }
  for (const auto kept : from.getReplies())
    report.replies.push_back(read_reply(kept.getReply(), ProcessId(kept.getCaller())));
  return report;
}

}  // namespace troupe::runtime
