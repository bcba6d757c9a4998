#pragma once

#include <memory>
#include <string>

#include "workdir/incoming_archive.hpp"
#include "workdir/live_folder.hpp"

/// A folder that is sent to the nodes of a run (--workdir), to be the working directory of its
/// ranks there. Nodes keep them in the state folder of whoever runs their processes.
namespace troupe::launch {

/// Whether this node has that archive in its cache already.
bool has_archive(const std::string& digest);
/// Takes what is sent under this digest into the cache of this node. Throws Refused.
std::unique_ptr<IncomingArchive> receive_archive(const std::string& digest);
/// What was sent under this digest, unpacked once for all processes of this run on this node.
/// `archive`: empty where it is in the cache. Throws Refused where it cannot be written.
std::unique_ptr<LiveFolder> receive_folder(const std::string& digest, const std::string& archive,
                                           const std::string& run_id);

/// A new folder of this process, for its programs' small files. Throws Refused.
std::unique_ptr<LiveFolder> make_scratch();

/// Removes both of processes that have ended without removing them, as those do that end with their
/// node. What cannot be removed stays. For who has ended a node.
void remove_left_of_programs();

}  // namespace troupe::launch
