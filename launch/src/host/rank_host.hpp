#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/programs.hpp"
#include "host/rendezvous_server.hpp"
#include "host/reserved_port.hpp"
#include "plan/news.hpp"
#include "plan/plan.hpp"
#include "workdir/workdir.hpp"

namespace troupe::launch {

/// The actor that runs one or more ranks of a gang of programs on its node: one rank of the gang of
/// hosts. Called by the driver only, in the order facts(), receive(), start(), then next() and
/// stop().
class RankHost {
 public:
  static constexpr std::string_view troupe_label = "troupe run";

  RankHost();

  /// Where it is, and whether it has the folder of this digest; reserves this many ports. The first
  /// host begins to serve Horovod's rendezvous, for as long as it lives.
  HostFacts facts(int ports, const std::string& workdir);
  /// Takes the next piece of the archive of the folder that is sent, for this node; after the
  /// `last` its hosts may be started. Throws Refused where it cannot be written.
  void receive(const std::string& workdir, bool last, const std::string& piece);
  /// Starts the programs. One that cannot be started has ended, and next() says why. `attached`:
  /// what they find in the file that TROUPE_ATTACHED_FILE names; empty: nothing. Throws Refused
  /// where the folder or the file cannot be written.
  void start(HostOrder order, const std::string& attached);
  /// Waits for something to tell, 100 ms at most, as a stop() may stand behind this call.
  /// `with_output`: as Programs::next() has it.
  HostNews next(bool with_output);
  /// Programs::stop().
  void stop(std::uint32_t grace_ms);
  /// Removes what was written for the programs, which have ended.
  void leave();

 private:
  void make_scratch_for(bool needed);
  std::string error_file(int local) const;
  void add_traceback(RankEnd& end) const;
  std::string directory_for(const HostOrder& order);

  std::vector<ReservedPort> ports_;
  std::unique_ptr<RendezvousServer> rendezvous_;
  std::unique_ptr<LiveFolder> scratch_;  // none where it cannot be made, and nobody needs it
  std::unique_ptr<IncomingArchive> incoming_;
  std::unique_ptr<LiveFolder> workdir_;
  std::unique_ptr<Programs> programs_;
};

}  // namespace troupe::launch
