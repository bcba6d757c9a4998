#include "node/node.hpp"

#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>
#include <csignal>

#include "config/name.hpp"
#include "log/log.hpp"
#include "node/failures.hpp"
#include "node/guard/orphans.hpp"
#include "node/join.hpp"
#include "node/limits/cpus.hpp"
#include "node/node_impl.hpp"
#include "os/machine.hpp"
#include "os/open_files.hpp"
#include "transport/find_token.hpp"
#include "transport/patience.hpp"

namespace troupe::node {
namespace {

constexpr std::chrono::seconds kKillLimit{5};  // for killed processes to be reaped

}  // namespace

Node::Node(asio::io_context& loop, NodeOptions options) {
  check_offer(options);
  check_host(loop, options.host);
  impl_ = std::make_unique<Impl>(loop, std::move(options));
}
Node::~Node() = default;
void Node::start(std::function<void(runtime::NodeId)> joined,
                 std::function<void(std::string, bool)> stopped) {
  impl_->start(std::move(joined), std::move(stopped));
}
void Node::stop(std::string why) { impl_->stop(std::move(why), false); }

Node::Impl::Impl(asio::io_context& loop, NodeOptions options)
    : loop_(loop),
      options_(std::move(options)),
      name_(options_.name.empty() ? config::printable(os::host_name()) : options_.name),
      guardian_(loop),
      reaper_(loop, Reaper::Unknown::Reaped),
      output_(loop, {}, output_callbacks()),
      workers_(loop, reaper_, workers_options(),
               [this](transport::Outgoing& message) { to_head(message); }),
      beat_timer_(loop),
      stop_timer_(loop) {
  if (options_.zygote >= 0) zygote_announced_ = reaper_.announce();
  workers_.use_output(&output_);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is an error like a full disk
  adopt_orphans();
  reaper_.on_swept([this] { on_swept(); });
  watch_guardian();
}

Node::Impl::~Impl() {
  if (head_) head_->close();
  if (state_ == State::Stopped) return;
  // Without a stop, everything goes at once.
  reaper_.kill_all();
  end_children(kKillLimit);
}

WorkersOptions Node::Impl::workers_options() {
  WorkersOptions options;
  options.where = "node " + name_;
  options.node_name = name_;
  options.log_directory = options_.log_directory;
  options.restore_logs = [this] { logs_.restore(); };
  options.start_limit = options_.program_start;
  options.token = options_.token;
  return options;
}

void Node::Impl::start(std::function<void(runtime::NodeId)> joined,
                       std::function<void(std::string, bool)> stopped) {
  joined_ = std::move(joined);
  stopped_ = std::move(stopped);
  state_ = State::Joining;
  os::raise_open_files_limit();
  if (!options_.log_directory.empty()) {
    if (auto why = logs_.open(options_.log_directory); !why.empty()) {
      if (options_.requires_logs) return stop(std::move(why), true);
      log::warn(why + "; worker processes print where this program does, without their names");
      options_.log_directory.clear();
      workers_.without_logs();
    }
  }
  if (!options_.log_parent.empty()) remove_old_logs(options_.log_parent, options_.kept_logs);
  gpus_ = offered_gpus(options_);
  if (const auto why = why_more_cpus_than_usable(options_.cpus, os::usable_cpus()); !why.empty())
    log::warn(why);
  transport::Patience patience;
  // A head that is too busy to let this node in is waited for as long as one that falls silent.
  patience.time = options_.head_silence;
  patience.again = [this, alive = std::weak_ptr(alive_)](const std::string& line) {
    if (alive.expired() || is_stopping()) return false;
    log::warn(line);
    return true;
  };
  transport::connect_patiently(
      loop_, options_.head, client_options(), std::move(patience),
      [this, alive = std::weak_ptr(alive_)](transport::ConnectionPtr head,
                                            transport::Accepted accepted) {
        if (alive.expired() || is_stopping()) return head->close();
        on_open(std::move(head), accepted);
      },
      [this, alive = std::weak_ptr(alive_)](transport::Denied denied) {
        if (alive.expired()) return;
        stop(denied.why + options_.head_advice + transport::about_other_head(options_.head), true);
      });
}

transport::ClientOptions Node::Impl::client_options() const {
  transport::ClientOptions client;
  client.self.role = wire::Role::NODE;
  client.self.cluster = cluster_;  // empty until it has joined one
  client.key = options_.token;
  client.key_from = options_.token_from;
  return client;
}

// ---- the way down -------------------------------------------------------------------------------

void Node::Impl::stop(std::string why, bool failed) {
  if (is_stopping()) return;
  state_ = State::Stopping;
  why_ = std::move(why);
  failed_ = failed;
  beat_timer_.cancel();
  redial_.reset();
  const auto reason = "its node stops: " + why_;
  workers_.terminate_all(reason);  // first: a start that its launcher gives up has not failed
  for (auto& [number, job] : jobs_) job.launcher->close();
  workers_.on_empty([this] { on_swept(); });
  stop_timer_.expires_after(workers_.empty() ? std::chrono::milliseconds(0) : options_.stop_grace);
  stop_timer_.async_wait(unless_gone([this, reason] {
    workers_.stop_all(reason);
    stop_timer_.expires_after(kKillLimit);
    stop_timer_.async_wait(unless_gone([this] {
      log::error(
          fmt::format("{} processes of this node do not end; they are left to its parent process",
                      reaper_.size() + workers_.end_orphans()));
      finish();
    }));
    on_swept();
  }));
}

/// What ended worker processes have left is ended; once nothing of it is there, a node that is to
/// stop has stopped.
void Node::Impl::on_swept() {
  const auto left = workers_.end_orphans();
  if (state_ == State::Stopping && workers_.empty() && reaper_.size() == 0 && left == 0) finish();
}

void Node::Impl::finish() {
  if (state_ == State::Stopped) return;
  state_ = State::Stopped;
  guardian_.close();
  stop_timer_.cancel();
  reaper_.stop();
  jobs_.clear();
  output_.stop();
  workers_.use_store(nullptr);
  store_.reset();
  if (head_) {
    transport::Outgoing message;
    message.root().setNodeLeaves();
    head_->send(message);
    head_->finish();
  }
  head_.reset();
  if (stopped_) {
    asio::post(loop_, [stopped = std::move(stopped_), why = why_, failed = failed_] {
      stopped(why, failed);
    });
  }
}

/// Nothing is ever written to that pipe: it can be read once its other end is gone.
void Node::Impl::watch_guardian() {
  if (options_.guardian < 0) return;
  guardian_.assign(options_.guardian);
  guardian_.async_wait(asio::posix::descriptor_base::wait_read, unless_gone([this] {
                         if (is_stopping()) return;
                         // Without one, nothing would end what user code started if this process
                         // were killed.
                         stop(options_.guardian_described + " was killed", true);
                       }));
}

}  // namespace troupe::node
