#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ids/ids.hpp"
#include "node/guard/reaper.hpp"
#include "node/head_redial.hpp"
#include "node/limits/gpus.hpp"
#include "node/log_folder.hpp"
#include "node/node.hpp"
#include "node/output/output_tail.hpp"
#include "node/program/program_cache.hpp"
#include "node/spawn/launcher.hpp"
#include "node/store_host.hpp"
#include "node/workers.hpp"
#include "os/unique_fd.hpp"
#include "transport/peer_silence.hpp"
#include "transport/socket/endpoint.hpp"
#include "transport/stall_detector.hpp"
#include "transport/stream/resumable_line.hpp"

namespace troupe::node {

using runtime::JobId;
using runtime::NodeId;
using runtime::ProcessId;

/// The head's messages to this node, and the node's way down. See Node.
///
/// The line to the head, from the connection on:
///
///   [joining] --nodeJoined with a secret--> [carried] <---------------- the head takes it back ----.
///       |                                      |`--the connection ends--> [broken: dials again] ---'
///       |                                      |--heartbeats in vain: dials again, beside it------'
///       |--the connection ends--> stop         |--shutdown--> stop       |-- refused, or nobody listens --> stop
///                                              `--silence--> stop        `-- silence: the head's, and the network's --> stop
///
/// Silence is that of NodeOptions::head_silence. In a private cluster, through a unix socket, the
/// end of the connection is that of the head.
struct Node::Impl {
  Impl(asio::io_context& loop, NodeOptions options);
  ~Impl();

  void start(std::function<void(NodeId)> joined, std::function<void(std::string, bool)> stopped);
  void stop(std::string why, bool failed);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { New, Joining, Joined, Stopping, Stopped };
  struct Job {
    std::shared_ptr<Launcher> launcher;
    WorkerSetup setup;
  };

  // Towards the head.
  void on_open(transport::ConnectionPtr head, const transport::Accepted& accepted);
  void on_line_broken(const std::string& why);
  void redial();
  void on_redial_ended(HeadRedial::End how, const std::string& why);
  std::string describe_silence() const;
  void send_beat();
  void on_message(wire::Message::Reader message);
  void on_joined(wire::NodeJoined::Reader joined);
  void stop_with_cluster(const std::string& why);
  void on_job_started(wire::JobStarted::Reader started);
  void tell_standstill(Clock::duration stood);
  std::string about_standstill() const;
  void on_job_ended(JobId job);
  void on_start_process(wire::StartProcess::Reader start);
  void on_log_request(wire::LogRequest::Reader request);
  void open_store();
  void beat();
  void tell_store_usage();
  void to_head(transport::Outgoing& message);
  void refuse_start(ProcessId process, const std::string& why);
  ProgramFetch fetch_from(const wire::Address::Reader& driver, JobId job) const;
  std::shared_ptr<ProgramCache> cache();
  std::string head_name() const;

  // Its own processes.
  transport::ClientOptions client_options() const;
  void watch_guardian();
  void on_swept();
  void finish();
  WorkersOptions workers_options();
  OutputTail::Callbacks output_callbacks();
  void flush_output(JobId job);
  bool is_stopping() const { return state_ >= State::Stopping; }

  /// A handler that does nothing once this object is gone, or where the wait was cancelled.
  template <class Then>
  auto unless_gone(Then then) {
    return
        [alive = std::weak_ptr(alive_), then = std::move(then)](boost::system::error_code error) {
          if (!error && !alive.expired()) then();
        };
  }

  asio::io_context& loop_;
  NodeOptions options_;
  std::string name_;
  asio::posix::stream_descriptor guardian_;
  Reaper reaper_;
  // Of a zygote that was there before the node, until its job starts.
  Reaper::Announcement zygote_announced_;
  OutputTail output_;
  Workers workers_;
  LogFolder logs_;
  std::vector<Gpu> gpus_;
  std::shared_ptr<ProgramCache> cache_;
  std::map<JobId, Job> jobs_;
  std::unique_ptr<StoreHost> store_;  // from the connection to the head on
  std::optional<store::Statistics> told_usage_;

  State state_ = State::New;
  transport::LinePtr head_;
  HeadRedial::Self self_;  // for a head to take this node back
  std::shared_ptr<HeadRedial> redial_;
  transport::Endpoint redial_to_;
  /// Before the next one dials. It grows until the head echoes a heartbeat, so that a connection
  /// which breaks again at once is not made again in a loop.
  std::chrono::milliseconds redial_pause_{0};
  int beats_in_vain_ = 0;  // sent since the head echoed one, or since the connection was made again
  /// What was to be told before nodeJoined: the messages behind it are counted.
  std::deque<transport::Outgoing> held_back_;
  // Of the connection that has ended, and of the last attempt to make another one; empty: none yet.
  std::string why_broken_, why_not_again_;
  std::string cluster_;
  std::string host_;
  NodeId node_{};
  std::uint64_t beats_ = 0;
  transport::PeerSilence head_silence_{transport::kSilenceNotice, options_.head_silence};
  transport::StallDetector stall_detector_{2 * options_.heartbeat};
  struct {
    Clock::duration time{};
    Clock::time_point ended{};
  } stood_still_;  // the last time that was worth saying
  asio::steady_timer beat_timer_, stop_timer_;
  std::function<void(NodeId)> joined_;
  std::function<void(std::string, bool)> stopped_;
  std::string why_;
  bool failed_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::node
