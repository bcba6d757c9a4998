#include "calls/death_codec.hpp"

#include "wire/codec.hpp"

namespace troupe::runtime {

Death read_death(wire::HeadNotice::Reader tell, wire::Failure::Reader failure) {
  Death death(read_failure(failure));
  if (const auto calls = tell.getCalls(); calls.getKnown()) {
    death.calls = CallsSeen{.begun = calls.getBegun(), .finished = calls.getFinished()};
  }
  return death;
}

void write_death(wire::HeadNotice::Builder tell, wire::Failure::Builder failure,
                 const Death& death) {
  write_failure(failure, death.how);
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
}

ExecutionRecord::Report read_callers(wire::ProcessExited::Reader from) {
  ExecutionRecord::Report report{.callers = {}, .complete = from.getCallersKnown()};
  for (auto caller : from.getCallers()) {
    report.callers.push_back(
        {.process = ProcessId(caller.getCaller()),
         .calls = {.begun = caller.getBegun(), .finished = caller.getFinished()}});
  }
  return report;
}

}  // namespace troupe::runtime
