#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "calls/timeline/call_trace.hpp"
#include "ids/ids.hpp"
#include "node/output/log_reader.hpp"
#include "wire/message.capnp.h"

namespace troupe::node {

/// What the worker processes of a node have run, for `troupe timeline`: of those that are there it
/// is in memory that they share with the node, of those that have ended in a file beside their log,
/// "job-5-calls-7.trace", which the node writes as it reaps them.

/// The file of a process, in the folder of the log files.
std::string trace_file(const std::string& folder, runtime::JobId job, runtime::ProcessId process);

/// Writes the file of a process that has ended, up to 700 KB. Whole, or not at all: where it cannot
/// be written (the disk is full, the folder was removed), nobody is told, as nobody is whose call
/// was forgotten.
void save_trace(const std::string& folder, const runtime::CallTrace& trace);

/// The processes of a node that are there and have run something.
struct LiveTraces {
  std::map<runtime::ProcessId, runtime::JobId> processes;
  /// `only_running`: the call that is under way, and no other.
  std::function<std::optional<runtime::CallTrace>(runtime::ProcessId, bool only_running)> read;
};

/// Answers `troupe timeline`: a part for each process of that job behind number `after`, those that
/// have ended included, in ascending order. The first ones have what they have run, up to the one
/// that makes `most` bytes full; with `most` 0, none has. Where only calls that run are asked for,
/// only of processes that are there.
void read_traces(const Logs& logs, const LiveTraces& live, wire::LogRequest::Reader request,
                 wire::LogReply::Builder reply);

}  // namespace troupe::node
