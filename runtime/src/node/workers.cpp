#include "node/workers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

#include "calls/death_codec.hpp"
#include "log/log.hpp"
#include "node/failures.hpp"
#include "node/guard/mark.hpp"
#include "node/guard/orphans.hpp"
#include "node/log_tail.hpp"
#include "node/node.hpp"
#include "node/output/output_tail.hpp"
#include "node/spawn/child.hpp"
#include "node/spawn/never_began.hpp"
#include "node/store_host.hpp"
#include "node/token_request.hpp"
#include "os/machine.hpp"
#include "transport/frame.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/socket.hpp"
#include "wire/codec.hpp"

namespace troupe::node {
namespace {

constexpr int kMostAttempts = 3;          // when a zygote ends in the middle of a fork
constexpr std::size_t kMostWords = 1000;  // of what a process says of its own end

}  // namespace

struct Workers::Worker {
  Worker(asio::io_context& loop, ProcessId number, WorkerSetup what)
      : process(number), setup(std::move(what)), timer(loop.get_executor()) {}

  ProcessId process;
  WorkerSetup setup;
  std::vector<std::string> environment;
  std::shared_ptr<Launcher> launcher;
  transport::ConnectionPtr link;
  std::optional<runtime::ExecutionRecord> record;
  transport::SilenceTimer timer;
  LogTail log;
  std::string stopped_because;  // not empty: it was ended by the node
  bool ends_with_node = false;  // for that reason, and for no other
  std::string own_words;        // why it could not start, as it says itself
  pid_t pid = 0;
  std::string out_of_memory;  // not empty: the kernel ended it, as it seems
  int attempts = 0;
  /// It says that it is ready, and no zygote has told of it yet: one that ends before that takes it
  /// along, and the next attempt has another address.
  runtime::AddressPtr ready_early;
  bool by_exec = false;
  bool ready = false;
  bool over = false;
};

Workers::Workers(asio::io_context& loop, Reaper& reaper, WorkersOptions options, ToHead to_head)
    : loop_(loop),
      reaper_(reaper),
      options_(std::move(options)),
      to_head_(std::move(to_head)),
      machine_(os::machine_id()) {}

Workers::~Workers() {
  for (auto& [process, worker] : workers_) {
    if (worker->link) worker->link->close();
  }
}

void Workers::start(ProcessId process, WorkerSetup setup, std::vector<std::string> environment,
                    std::shared_ptr<Launcher> launcher) {
  started_.insert(std::ranges::upper_bound(started_, process), process);
  auto worker = std::make_shared<Worker>(loop_, process, std::move(setup));
  worker->environment = std::move(environment);
  worker->launcher = std::move(launcher);
  if (!workers_.emplace(process, worker).second) {
    log::error(fmt::format("the head asked for process {} twice; ignored", process));
    return;
  }
  launch(worker);
}

void Workers::launch(const WorkerPtr& worker) {
  ++worker->attempts;
  LaunchRequest request;
  request.process = worker->process;
  request.environment = worker->environment;
  request.link = open_link(worker);
  if (!request.link) {
    return report(
        *worker,
        failure_of(
            Failure::Kind::Program,
            fmt::format(
                "no socket for process {}: {}{}", worker->process, std::strerror(errno),
                errno == EMFILE ? ": raise the limit of open files there (ulimit -Hn)" : "")));
  }
  if (!options_.log_directory.empty()) {
    request.log = fmt::format("{}/job-{}-process-{}.log", options_.log_directory, worker->setup.job,
                              worker->process);
    if (options_.restore_logs) options_.restore_logs();
    // Numbers begin anew with each head, and the folder may be that of an earlier node.
    if (worker->attempts == 1) {
      std::rename(request.log.c_str(), (request.log + ".old").c_str());
      ::unlink(trace_file(options_.log_directory, worker->setup.job, worker->process).c_str());
    }
  }
  worker->log = LogTail(request.log);
  worker->ready_early.reset();
  configure(*worker);
  follow_output(worker, request.log);
  worker->launcher->start(std::move(request), [this, worker](LaunchResult result) {
    on_launched(worker, std::move(result));
  });
}

os::UniqueFd Workers::open_link(const WorkerPtr& worker) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  os::UniqueFd its(ends[1]);
  boost::system::error_code not_watched;
  auto mine = transport::adopt(loop_, AF_UNIX, transport::OwnedFd(ends[0]), not_watched);
  if (not_watched) {
    errno = not_watched.value();
    return {};
  }
  if (worker->link) worker->link->close();
  worker->link = transport::Connection::make(std::move(mine));
  std::weak_ptr<Worker> weak = worker;
  worker->link->start(
      [this, weak](wire::Message::Reader message) {
        if (auto worker = weak.lock()) on_message(*worker, message);
      },
      [this, weak](const std::string&) {
        if (auto worker = weak.lock()) on_link_closed(worker);
      });
  return its;
}

/// Without memory for its record it works as well: what it was doing when it ended is then not
/// known.
void Workers::configure(Worker& worker) {
  worker.record = runtime::ExecutionRecord::create();
  const auto& setup = worker.setup;
  transport::Outgoing message;
  auto config = message.root().initWorkerConfig();
  config.setProcess(worker.process.value());
  config.setJob(setup.job.value());
  config.setJobKey(capnp::Data::Reader(setup.job_key.data(), setup.job_key.size()));
  config.setCluster(setup.cluster);
  config.setNode(setup.node.value());
  config.setHost(setup.host);
  config.setMachine(machine_);
  config.setThreads(setup.threads);
  std::vector<os::UniqueFd> record;
  if (worker.record) record.push_back(std::move(worker.record->descriptor()));
  worker.link->send_with_descriptors(std::move(message), std::move(record));
}

void Workers::follow_output(const WorkerPtr& worker, const std::string& log) {
  if (!output_ || !worker->setup.shows_output || log.empty()) return;
  output_->add(worker->process, {.job = worker->setup.job,
                                 .file = log,
                                 .labels = [weak = std::weak_ptr(worker)](std::uint64_t position) {
                                   const auto worker = weak.lock();
                                   return worker && worker->record
                                              ? worker->record->labels_since(position)
                                              : std::vector<runtime::LabelHistory::Span>();
                                 }});
}

void Workers::on_launched(const WorkerPtr& worker, LaunchResult result) {
  if (auto* launched = std::get_if<Launched>(&result)) return on_running(worker, *launched);
  if (worker->over) return;
  if (auto* failure = std::get_if<Failure>(&result)) {
    if (!worker->stopped_because.empty()) failure->message = worker->stopped_because;
    return report(*worker, *failure);
  }
  if (!worker->stopped_because.empty())
    return report(*worker, failure_of(Failure::Kind::ProcessDied, worker->stopped_because));
  if (worker->attempts < kMostAttempts) return launch(worker);
  report(*worker,
         failure_of(Failure::Kind::ProcessDied,
                    fmt::format("the zygote of job {} ended {} times while it forked process {}",
                                worker->setup.job, kMostAttempts, worker->process)));
}

void Workers::on_running(const WorkerPtr& worker, const Launched& launched) {
  worker->pid = launched.pid;
  worker->by_exec = launched.by_exec;
  if (output_) output_->started(worker->process, launched.pid);
  reaper_.watch(launched.pid, Reaper::Group::Killed,
                [this, worker](int status) { on_ended(worker, status); });
  if (worker->over || !worker->stopped_because.empty() || !worker->own_words.empty())
    return kill_group(launched.pid);
  if (worker->ready_early) tell_ready(*worker, *worker->ready_early);
  if (launched.by_exec && !worker->ready) {
    kill_after(worker, options_.start_limit,
               "the program " + took_too_long(worker->launcher->program(), options_.start_limit));
  }
}

void Workers::on_message(Worker& worker, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::HEAD_REQUEST: {
      // A detached actor that has done its work is kept for what it knows, and makes no processes.
      if (message.getHeadRequest().isEnded()) worker.launcher->rest();
      transport::Outgoing out;
      auto relay = out.root().initRelay();
      relay.setProcess(worker.process.value());
      relay.setRequest(message.getHeadRequest());
      return to_head_(out);
    }
    case wire::Message::PROCESS_READY:
      return on_ready(worker, message.getProcessReady());
    case wire::Message::ADMIN_REQUEST: {
      const auto request = message.getAdminRequest();
      transport::Outgoing out;
      out.root().setAdminReply(
          answer_token_request({request.cStr(), request.size()}, options_.token));
      return worker.link->send(out);
    }
    case wire::Message::PROCESS_EXITED:
      return on_given_up(worker, message.getProcessExited());
    default:
      if (pass_to_store(worker, message)) return;
      log::warn(fmt::format("process {} sent its node a message of kind {}; ignored",
                            worker.process, static_cast<int>(message.which())));
  }
}

bool Workers::pass_to_store(Worker& worker, wire::Message::Reader message) {
  return store_ && store_->on_message(worker.process, worker.setup.job, worker.link, message,
                                      [this, process = worker.process](const std::string& why) {
                                        stop(process, why);
                                      });
}

void Workers::on_ready(Worker& worker, wire::ProcessReady::Reader ready) {
  auto address = runtime::read_address(ready.getAddress());
  if (worker.pid == 0) {
    worker.ready_early = std::move(address);
  } else {
    tell_ready(worker, *address);
  }
}

void Workers::tell_ready(Worker& worker, const runtime::Address& address) {
  if (std::exchange(worker.ready, true)) return;
  worker.timer.cancel();
  transport::Outgoing out;
  auto forwarded = out.root().initProcessReady();
  forwarded.setProcess(worker.process.value());
  runtime::write_address(forwarded.initAddress(), address);
  forwarded.setPid(worker.pid);
  to_head_(out);
}

/// It says why it cannot start, and waits to be ended: what it has said must be here before its end
/// is reported.
void Workers::on_given_up(Worker& worker, wire::ProcessExited::Reader exited) {
  if (!worker.own_words.empty()) return;
  auto words = runtime::read_failure(exited.getFailure()).message;
  std::ranges::replace(words, '\n', ' ');
  worker.own_words =
      words.empty() ? "it does not say why" : transport::printable(words, kMostWords);
  if (worker.pid > 0) kill_group(worker.pid);
}

void Workers::on_link_closed(const WorkerPtr& worker) {
  if (worker->over || worker->pid == 0) return;  // not running yet: the launcher tells
  kill_after(worker, options_.link_grace, "it closed the socket to its node");
}

void Workers::kill_after(const WorkerPtr& worker, std::chrono::milliseconds time, std::string why) {
  worker->timer.start(time, [this, weak = std::weak_ptr(worker), why = std::move(why)] {
    const auto worker = weak.lock();
    if (worker && !worker->over)
      stop(worker->process, worker->ready ? why : why + worker->log.quote());
  });
}

void Workers::stop(ProcessId process, const std::string& why) {
  const auto found = workers_.find(process);
  if (found == workers_.end()) return;
  const auto worker = found->second;
  if (worker->stopped_because.empty())
    worker->stopped_because = why.empty() ? "the head ended it" : why;
  if (worker->pid > 0) kill_group(worker->pid);
}

void Workers::stop_job(JobId job, const std::string& why) {
  std::vector<ProcessId> processes;
  for (const auto& [process, worker] : workers_) {
    if (worker->setup.job == job) processes.push_back(process);
  }
  for (auto process : processes) stop(process, why);
}

void Workers::tell_shutdown(const std::string& why) {
  for (const auto& [process, worker] : workers_) {
    transport::Outgoing message;
    message.root().setShutdown(why);
    if (worker->link && worker->ready) worker->link->send(message);
  }
}

void Workers::tell_node_lost(wire::NodeLost::Reader lost) {
  for (const auto& [process, worker] : workers_) {
    transport::Outgoing message;
    message.root().setNodeLost(lost);
    if (worker->link && worker->ready) worker->link->send(message);
  }
}

void Workers::terminate_all(const std::string& why) {
  for (const auto& [process, worker] : workers_) {
    if (worker->stopped_because.empty()) {
      worker->stopped_because = why;
      worker->ends_with_node = true;
    }
    if (worker->pid > 0) ::kill(worker->pid, SIGTERM);
  }
}

void Workers::stop_all(const std::string& why) {
  std::vector<ProcessId> processes;
  for (const auto& [process, worker] : workers_) processes.push_back(process);
  for (auto process : processes) stop(process, why);
}

void Workers::tell(ProcessId process, wire::HeadNotice::Reader tell) {
  const auto found = workers_.find(process);
  if (found == workers_.end()) return;
  transport::Outgoing out;
  out.root().setHeadNotice(tell);
  found->second->link->send(out);
}

void Workers::on_ended(const WorkerPtr& worker, int status) {
  // What it said before its end counts: a value that it sealed is there.
  if (worker->link) worker->link->drain();
  worker->out_of_memory = memory_ran_out(*worker, status);
  if (!worker->over) report(*worker, describe_end(*worker, status));
}

/// How its end is told where memory had run out; each is logged, for a task may be tried again
/// without a word.
std::string Workers::memory_ran_out(const Worker& worker, int status) {
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || !worker.stopped_because.empty() ||
      worker.over)
    return {};
  auto why = memory_kills_.explain(MemoryKills::Clock::now());
  if (why.empty()) return {};
  why = "out of memory: " + why;
  log::warn(fmt::format("job {}: process {} (pid {}) {}; {}", worker.setup.job, worker.process,
                        worker.pid, describe_status(status), why));
  return "; " + why;
}

std::size_t Workers::end_orphans() {
  return kill_orphans([this](pid_t child) {
    if (reaper_.watches(child)) return false;
    const auto process = mark_of_child(child);
    return process > 0 && !workers_.contains(ProcessId(process));
  });
}

Failure Workers::describe_end(const Worker& worker, int status) const {
  Failure failure;
  const bool never_began = worker.by_exec && !worker.ready;
  failure.kind = never_began ? Failure::Kind::Program : Failure::Kind::ProcessDied;
  if (WIFSIGNALED(status)) failure.signal = WTERMSIG(status);
  if (WIFEXITED(status)) failure.exit_code = WEXITSTATUS(status);
  failure.where = options_.where;
  const auto who = fmt::format("process {} (pid {})", worker.process, worker.pid);
  if (!worker.own_words.empty()) {
    failure.kind = Failure::Kind::Program;
    failure.signal = 0;
    failure.message =
        fmt::format("{} could not start: {}{}", who, worker.own_words, worker.log.name());
  } else if (!worker.stopped_because.empty()) {
    const auto what = fmt::format("was ended: {}", worker.stopped_because);
    if (worker.ends_with_node) {
      // Its caller may have the work done elsewhere, as after the death of the node.
      auto lost =
          runtime::lost_with_node(worker.process, fmt::format("(pid {}) {}", worker.pid, what));
      lost.where = failure.where;
      return lost;
    }
    failure.message = fmt::format("{} {}", who, what);
  } else if (worker.ready) {
    failure.message = fmt::format("{} {}{}{}", who, describe_status(status), worker.out_of_memory,
                                  worker.log.quote());
  } else {
    auto ended = never_began
                     ? ended_before_init(worker.launcher->program(), who, status)
                     : fmt::format("{} {} before it was ready", who, describe_status(status));
    failure.message = std::move(ended) + worker.out_of_memory + worker.log.quote();
  }
  return failure;
}

void Workers::log_failed_start(const Worker& worker, const Failure& failure) {
  if (worker.ready || (!worker.stopped_because.empty() && worker.own_words.empty())) return;
  auto text = fmt::format("job {}: {}", worker.setup.job, failure.message);
  if (text != last_failed_start_) log::error(text);
  last_failed_start_ = std::move(text);
}

std::optional<runtime::CallTrace> Workers::trace_of(const Worker& worker, bool only_running) const {
  if (!worker.record || worker.record->history().empty()) return std::nullopt;
  runtime::CallTrace trace;
  trace.job = worker.setup.job;
  trace.process = worker.process;
  trace.pid = worker.pid;
  trace.node = worker.setup.node;
  trace.node_name = options_.node_name;
  trace.ended = worker.over;
  const auto& history = worker.record->history();
  const auto content = only_running ? history.read_running() : history.read();
  fill(trace, content, os::TickScale::now());
  return trace;
}

LiveTraces Workers::traces() const {
  LiveTraces live;
  for (const auto& [process, worker] : workers_) {
    if (worker->record && !worker->record->history().empty())
      live.processes.emplace(process, worker->setup.job);
  }
  live.read = [this](ProcessId process, bool only_running) {
    const auto found = workers_.find(process);
    return found == workers_.end() ? std::nullopt : trace_of(*found->second, only_running);
  };
  return live;
}

void Workers::save_trace(const Worker& worker) const {
  if (options_.log_directory.empty()) return;
  if (const auto trace = trace_of(worker, false)) node::save_trace(options_.log_directory, *trace);
}

void Workers::report(Worker& worker, const Failure& failure) {
  worker.over = true;
  save_trace(worker);
  worker.timer.cancel();
  log_failed_start(worker, failure);
  if (worker.link) worker.link->close();
  if (store_) store_->ended(worker.process);
  if (output_) output_->finish(worker.process);
  transport::Outgoing out;
  auto exited = out.root().initProcessExited();
  exited.setProcess(worker.process.value());
  runtime::write_failure(exited.initFailure(), failure);
  if (worker.record) runtime::write_callers(exited, worker.record->read());
  to_head_(out);
  workers_.erase(worker.process);
  if (workers_.empty() && on_empty_) on_empty_();
}

}  // namespace troupe::node
