#include "session/embedded.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>

#include "config/audience.hpp"
#include "config/token.hpp"
#include "head/head.hpp"
#include "log/log.hpp"
#include "node/guard/guardian.hpp"
#include "node/node.hpp"
#include "node/spawn/child.hpp"
#include "node/spawn/fork_check.hpp"
#include "node/spawn/spawn.hpp"
#include "node/spawn/zygote.hpp"
#include "os/running_time.hpp"
#include "os/unique_fd.hpp"
#include "session/worker.hpp"
#include "store/memory/spill.hpp"
#include "transport/handshake/proof.hpp"

namespace troupe::runtime {
namespace {

using nlohmann::json;
using os::UniqueFd;

// Each in time that this process runs. Nobody waits so long for a process that has ended: it has
// closed its end of the socket, and its pidfd says so.
constexpr std::chrono::seconds kStartLimit{60};
constexpr std::chrono::seconds kStopLimit{10};
constexpr std::chrono::seconds kEndLimit{10};
constexpr auto kHost = "127.0.0.1";

[[noreturn]] void refuse(std::string message) {
  raise({.kind = Failure::Kind::Refused, .message = std::move(message)});
}

std::pair<UniqueFd, UniqueFd> socket_pair(int type) {
  int ends[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    refuse(fmt::format("no socket pair: {}", std::strerror(errno)));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

json to_json(const InitOptions& options) {
  json out{{"cpus", options.cpus}, {"resources", options.resources}};
  if (options.gpus) out["gpus"] = *options.gpus;
  out["object_store_bytes"] = options.object_store_bytes;
  out["spill_directory"] = options.spill_directory.native();
  return out;
}

InitOptions from_json(const json& in) {
  InitOptions options;
  options.cpus = in.at("cpus");
  options.resources = in.at("resources");
  if (in.contains("gpus")) options.gpus = in.at("gpus").get<int>();
  options.object_store_bytes = in.at("object_store_bytes");
  options.spill_directory = in.at("spill_directory").get<std::string>();
  return options;
}

/// False: the other end is gone.
bool try_to_say(int socket, const json& message) {
  const auto text = json::to_cbor(message);  // not as text: a path may have any bytes
  return send(socket, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
}

/// To the driver, without which there is nothing to do.
void say(int socket, const json& message) {
  if (!try_to_say(socket, message)) _exit(1);
}

/// nullopt: nothing came in time, or the other end is gone.
std::optional<json> hear(int socket) {
  if (!os::wait_readable(socket, os::RunningTime(kStartLimit))) return std::nullopt;
  std::vector<char> text(64 << 10);
  const auto got = recv(socket, text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  auto parsed = json::from_cbor(text.begin(), text.begin() + got, true, false);
  return parsed.is_discarded() ? std::nullopt : std::optional(std::move(parsed));
}

/// A zygote forked from here, before this process becomes a cluster. In its worker processes it
/// does not return.
pid_t fork_zygote(UniqueFd& control) {
  auto [mine, its] = socket_pair(SOCK_SEQPACKET);
  const pid_t pid = fork();
  if (pid < 0) refuse(fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    mine.reset();
    run_worker(node::serve_zygote(its.release()));
  }
  control = std::move(mine);
  return pid;
}

void close_inherited(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned first = 3;
  for (int fd : keep) {
    if (static_cast<unsigned>(fd) > first) close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  close_range(first, ~0U, 0);
}

/// A private cluster's logs are beside those of nodes, so that neither push out the others' old ones.
void choose_logs(node::NodeOptions& node) {
  node.requires_logs = false;
  try {
    node.log_parent = config::state_directory() + "/private-logs";
    node.log_directory = fmt::format("{}/node-{}", node.log_parent, ::getpid());
  } catch (const Error& no_home) {
    log::warn(fmt::format("{}; worker processes print where this program does, without their names",
                          no_home.what()));
  }
}

/// The cluster in the child process: a head and a node on one loop.
class PrivateCluster {
 public:
  PrivateCluster(int control, pid_t driver, const InitOptions& options, node::Guardian guardian,
                 int zygote, pid_t zygote_pid)
      : control_(control), token_(config::random_token()), watch_(loop_) {
    head::HeadOptions head;
    head.token = token_;
    head.unix_name = socket_;
    head_.emplace(loop_, head);
    node::NodeOptions node;
    node.head = {.host = {}, .port = 0, .unix_name = socket_};
    node.host = kHost;
    node.token = token_;
    node.cpus = options.cpus;
    node.gpus = options.gpus;
    node.resources = options.resources;
    node.store.cap_bytes = options.object_store_bytes;
    if (!options.spill_directory.empty()) node.store.spill_directory = options.spill_directory;
    choose_logs(node);
    node.guardian = guardian.lifeline.release();
    node.guardian_described = guardian.described;
    node.zygote = zygote;
    node.zygote_pid = zygote_pid;
    node_.emplace(loop_, node);
    end_with(driver);
  }

  [[noreturn]] void run() {
    head_->on_last_driver_gone([this] { stop("the driver has left"); });
    node_->start(
        [this](NodeId) {
          say(control_, {{"socket", socket_}, {"token", config::format_token(token_)}});
          joined_ = true;
        },
        [this](const std::string& why, bool failed) {
          if (failed && !stopping_) tell_failure(why);
          loop_.stop();
        });
    loop_.run();
    _exit(0);
  }

 private:
  /// A pidfd is readable once its process has ended, whoever else holds its sockets.
  void end_with(pid_t driver) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, driver, 0));
    if (fd < 0) _exit(0);
    watch_.assign(fd);
    watch_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                      [this](const boost::system::error_code& error) {
                        if (!error) stop("the driver has ended");
                      });
  }

  /// The driver listens until the cluster is there; later its user is told.
  void tell_failure(const std::string& why) {
    if (joined_) return log::error("the private cluster of this program has ended: " + why);
    say(control_, {{"error", why}});
  }

  void stop(const std::string& why) {
    if (!std::exchange(stopping_, true)) node_->stop(why);
  }

  boost::asio::io_context loop_{1};
  int control_;
  transport::Secret token_;
  const std::string socket_ = "troupe-" + transport::random_name();
  boost::asio::posix::stream_descriptor watch_;
  std::optional<head::Head> head_;
  std::optional<node::Node> node_;
  bool joined_ = false;
  bool stopping_ = false;
};

[[noreturn]] void become_cluster(int control, pid_t driver, const InitOptions& options) {
  try {
    node::default_signals();
    setpgid(0, 0);               // a Ctrl-C is the driver's; this process follows the driver
    prctl(PR_SET_PDEATHSIG, 0);  // of one that was executed: it sees itself when the driver ends
    // Of one that was executed. No copy of this process could use CUDA then: the node executes the
    // program for its zygote, which finds the same, and then for each worker process.
    const bool makes_zygote = !node::has_initialized_cuda();
    auto guardian = node::run_under_guardian();
    signal(SIGPIPE, SIG_IGN);
    log::to_stderr();  // stdout is the program's
    UniqueFd zygote;
    const auto zygote_pid = makes_zygote ? fork_zygote(zygote) : 0;
    std::vector<int> kept{control, guardian.lifeline.get()};
    if (makes_zygote) kept.push_back(zygote.get());
    close_inherited(std::move(kept));
    auto& cluster = *new PrivateCluster(control, driver, options, std::move(guardian),
                                        zygote.release(), zygote_pid);
    cluster.run();
  } catch (const std::exception& error) {
    say(control, {{"error", error.what()}});
    _exit(1);
  }
}

pid_t exec_cluster(int control, const std::vector<std::string>& command_line,
                   const std::string& what_it_has) {
  if (config::audience() == config::Audience::Api) {  // nobody else can change anything about it
    std::fprintf(
        stderr,
        "troupe: the program has %s before it calls troupe::init, so worker processes cannot be "
        "forked from this one; the program is started anew for them. Call troupe::init first in "
        "main().\n",
        what_it_has.c_str());
  }
  node::Spawn spawn;
  spawn.path = "/proc/self/exe";
  spawn.arguments = command_line;
  spawn.environment =
      node::environment_with({fmt::format("{}=embedded:{}", node::kBootVariable, control)}, {});
  spawn.keep = {control};
  auto started = node::spawn(spawn);
  if (auto* failed = std::get_if<node::SpawnFailed>(&started)) refuse(failed->why);
  return std::get<pid_t>(started);
}

/// -> the status of its end: its own, or that of SIGKILL.
int end_child(pid_t child) {
  int status = 0;
  // It closes its end of the socket a moment before it has ended.
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  os::wait_readable(pidfd.get(), os::RunningTime(kEndLimit));
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return status;
}

std::string why_not_started(int status, const std::optional<json>& answer, bool executed) {
  if (answer) return answer->value("error", "the private cluster did not start");
  const bool killed_here = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const auto what = killed_here
                        ? fmt::format("did not start within {} s", kStartLimit.count())
                        : fmt::format("{} before it had started", node::describe_status(status));
  if (!executed || config::audience() != config::Audience::Api)
    return "the private cluster " + what;
  return fmt::format(
      "the private cluster {}; it is this program, executed anew, and runs main() up to "
      "troupe::init with the same arguments: call troupe::init there too, or call it here before "
      "threads are started and CUDA is used, then the program is forked instead",
      what);
}

/// Where memory is full is too late to hear of it.
void check_spill_directory(const std::filesystem::path& directory) {
  if (directory.empty()) return;
  if (const auto why = store::why_no_spilling_to(directory)) {
    refuse(
        fmt::format("large values cannot be spilled to '{}' (InitOptions::spill_directory): {}; "
                    "name a folder that can be written, or none for {}",
                    directory.native(), *why, store::kDefaultSpillParent));
  }
}

}  // namespace

Embedded::Embedded(const InitOptions& options, const std::vector<std::string>& command_line) {
  check_spill_directory(options.spill_directory);
  auto [mine, its] = socket_pair(SOCK_SEQPACKET);
  const auto what_it_has = node::why_not_to_fork();
  if (!what_it_has.empty()) {
    child_ = exec_cluster(its.get(), command_line, what_it_has);
    try_to_say(mine.get(), to_json(options));  // where it is gone already, hear() finds that
  } else {
    std::cout.flush();  // else the child would write it again
    std::fflush(nullptr);
    transport::warm_up();  // for this process, the cluster and its zygote at once
    const pid_t driver = getpid();
    child_ = fork();
    if (child_ < 0) refuse(fmt::format("fork: {}", std::strerror(errno)));
    if (child_ == 0) become_cluster(its.get(), driver, options);
  }
  its.reset();
  auto answer = hear(mine.get());
  if (answer && answer->contains("socket")) {
    head_ = {.host = {}, .port = 0, .unix_name = answer->at("socket").get<std::string>()};
    token_ =
        config::parse_token(answer->at("token").get<std::string>()).value_or(transport::Secret{});
    return;
  }
  refuse(why_not_started(end_child(child_), answer, !what_it_has.empty()));
}

Embedded::~Embedded() {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child_, 0)));
  if (!os::wait_readable(pidfd.get(), os::RunningTime(kStopLimit))) kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void serve_embedded(int control) {
  auto options = hear(control);
  if (!options) _exit(1);
  become_cluster(control, getppid(), from_json(*options));
}

}  // namespace troupe::runtime
