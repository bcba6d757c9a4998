#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "ids/ids.hpp"
#include "node/spawn/zygote_wire.hpp"

namespace troupe::node {

using runtime::ProcessId;

namespace asio = boost::asio;

/// The node's end of one zygote's socket. Lives on the node's loop.
///
///   [new] --Ready--> [ready] --socket closed / nonsense / close()--> [closed]
class ZygoteClient : public std::enable_shared_from_this<ZygoteClient> {
 public:
  /// Forked, Threads or Failed, as the zygote answered; nullptr: the zygote ended before it did.
  /// The worker's end of the link comes back, for another try.
  using OnAnswer = std::function<void(const ZygotePacket* answer, os::UniqueFd link)>;

  ZygoteClient(asio::io_context& loop, os::UniqueFd control);

  /// `on_ready` once the program has reached troupe::init; `on_closed` once, when no answer can
  /// come any more.
  void start(std::function<void()> on_ready, std::function<void()> on_closed);
  /// `packet.process` names the request in its answer, so it must not be in use by another one.
  void fork(const ZygotePacket& packet, os::UniqueFd link, OnAnswer on_answer);
  bool is_ready() const { return ready_ && control_.is_open(); }
  bool was_ready() const { return ready_; }
  bool owes_answers() const { return !waiting_.empty(); }
  /// The zygote answers what has reached it, and then ends.
  void finish();
  /// The zygote has ended: reads what it still said, then closes.
  void drain();
  /// Its other end, and so the zygote, ends with this. No handler is called any more.
  void close();

 private:
  struct Waiting {
    os::UniqueFd link;
    OnAnswer on_answer;
  };
  struct Queued {
    ProcessId process;
    std::string bytes;
  };

  void wait_to_read();
  void read();
  void on_packet(const ZygotePacket& packet);
  void write();
  void lost();

  asio::posix::stream_descriptor control_;
  std::function<void()> on_ready_, on_closed_;
  std::unordered_map<ProcessId, Waiting> waiting_;
  std::deque<Queued> outbox_;
  bool ready_ = false;
  bool writing_ = false;
};

}  // namespace troupe::node
