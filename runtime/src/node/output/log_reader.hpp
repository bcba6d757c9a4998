#pragma once

#include <functional>
#include <string>

#include "ids/ids.hpp"
#include "wire/message.capnp.h"

namespace troupe::node {

/// Where a node's log files are, and which of those in that folder are its own: others may use it
/// too, and earlier nodes have.
struct Logs {
  std::string folder;
  std::function<bool(runtime::ProcessId)> was_started;  ///< by this node
  std::function<bool(runtime::ProcessId)> runs;
};

/// Answers `troupe logs`: what stands in this node's log files of that job or process, from where
/// the asker has come to, and no more than it wants. Reads the files; of one that the asker does not
/// know, the last whole lines.
void read_logs(const Logs& logs, wire::LogRequest::Reader request, wire::LogReply::Builder reply);

}  // namespace troupe::node
