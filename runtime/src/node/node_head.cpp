#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "log/log.hpp"
#include "node/failures.hpp"
#include "node/join.hpp"
#include "node/node_impl.hpp"
#include "node/output/call_traces.hpp"
#include "node/output/log_reader.hpp"
#include "node/program/program.hpp"
#include "os/machine.hpp"
#include "wire/codec.hpp"

/// What a node and its head say to each other.
namespace troupe::node {
namespace {

/// What worker processes print waits in their files while more than this waits for the head.
constexpr std::size_t kMostQueuedOutput = 4 << 20;

}  // namespace

void Node::Impl::open_store() {
  try {
    store_ = std::make_unique<StoreHost>(StoreHost::Callbacks{
        .loop = loop_,
        .options = options_.store,
        .token = options_.token,
        .cluster = cluster_,
        .host = host_,
        .machine = os::machine_id(),
        .to_head = [this](transport::Outgoing& message) { to_head(message); }});
    workers_.use_store(store_.get());
  } catch (const Error& error) {
    stop(fmt::format("the object store has no place to listen: {}", error.what()), true);
  }
}

void Node::Impl::to_head(transport::Outgoing& message) {
  if (!head_) return;
  if (state_ == State::Joining) return void(held_back_.push_back(std::move(message)));
  head_->send(message);
}

OutputTail::Callbacks Node::Impl::output_callbacks() {
  return {.to_head = [this](transport::Outgoing& message) { to_head(message); },
          .is_held_up = [this] { return head_ && head_->queued_bytes() > kMostQueuedOutput; }};
}

void Node::Impl::flush_output(JobId job) {
  output_.flush(job);
  transport::Outgoing message;
  message.root().setOutputFlushed(job.value());
  to_head(message);
}

void Node::Impl::on_log_request(wire::LogRequest::Reader request) {
  transport::Outgoing answer;
  auto reply = answer.root().initLogReply();
  reply.setId(request.getId());
  const Logs logs{
      .folder = options_.log_directory,
      .was_started = [this](ProcessId process) { return workers_.was_started(process); },
      .runs = [this](ProcessId process) { return workers_.runs(process); }};
  if (request.getObjects()) {
    if (store_) store_->list_objects(request.getMost(), reply);
  } else if (request.getCalls()) {
    read_traces(logs, workers_.traces(), request, reply);
  } else {
    read_logs(logs, request, reply);
  }
  to_head(answer);
}

void Node::Impl::on_message(wire::Message::Reader message) {
  if (message.isHeartbeat()) {
    if (head_silence_.heard(Clock::now()) == transport::PeerSilence::Change::SpeaksAgain)
      log::info(fmt::format("{} goes on", head_name()));
    redial_.reset();  // the connection that there is leads to the head
    redial_pause_ = std::chrono::milliseconds(0);
    beats_in_vain_ = 0;
    return;
  }
  if (is_stopping()) return;
  switch (message.which()) {
    case wire::Message::NODE_JOINED:
      return on_joined(message.getNodeJoined());
    case wire::Message::JOB_STARTED:
      return on_job_started(message.getJobStarted());
    case wire::Message::JOB_ENDED:
      return on_job_ended(JobId(message.getJobEnded()));
    case wire::Message::START_PROCESS:
      return on_start_process(message.getStartProcess());
    case wire::Message::STOP_PROCESS:
      return workers_.stop(ProcessId(message.getStopProcess().getProcess()),
                           message.getStopProcess().getWhy());
    case wire::Message::RELAY: {
      auto relay = message.getRelay();
      if (relay.isNotice()) workers_.tell(ProcessId(relay.getProcess()), relay.getNotice());
      return;
    }
    case wire::Message::OUTPUT_FLUSH:
      return flush_output(JobId(message.getOutputFlush()));
    case wire::Message::LOG_REQUEST:
      return on_log_request(message.getLogRequest());
    case wire::Message::NODE_LOST:
      return workers_.tell_node_lost(message.getNodeLost());
    case wire::Message::SHUTDOWN:
      if (state_ != State::Joining) return stop_with_cluster(message.getShutdown());
      return stop(
          fmt::format("{} refuses this node: {}", head_name(), message.getShutdown().cStr()), true);
    default:
      if (store_ && store_->on_head_message(message)) return;
      log::warn(fmt::format("the head sent a message of kind {}; ignored",
                            static_cast<int>(message.which())));
  }
}

/// Its processes hear of it before they end.
void Node::Impl::stop_with_cluster(const std::string& why) {
  workers_.tell_shutdown(why);
  stop("the cluster was stopped: " + why, false);
}

void Node::Impl::on_joined(wire::NodeJoined::Reader joined) {
  if (state_ != State::Joining) return;
  state_ = State::Joined;
  node_ = NodeId(joined.getNode());
  if (const auto secret = transport::bytes_of(joined.getSecret());
      secret.size() == self_.secret.size()) {
    self_.node = node_;
    self_.incarnation = joined.getIncarnation();
    std::ranges::copy(secret, self_.secret.begin());
    head_->keep();
  }
  for (auto& message : held_back_) head_->send(message);
  held_back_.clear();
  store_->set_node(node_);
  if (joined.getCluster().size() > 0) cluster_ = joined.getCluster();
  if (joined.getNote().size() > 0) log::warn(joined.getNote().cStr());
  if (joined_) std::exchange(joined_, nullptr)(node_);
}

// ---- jobs and processes -------------------------------------------------------------------------

ProgramFetch Node::Impl::fetch_from(const wire::Address::Reader& driver, JobId job) const {
  ProgramFetch fetch;
  fetch.job = job;
  fetch.client.self.role = wire::Role::NODE;
  fetch.client.self.cluster = cluster_;
  fetch.client.self.subject = ProcessId(driver.getProcess());
  fetch.client.key = options_.token;
  if (driver.getUnixName().size() > 0 && std::string(driver.getMachine()) == os::machine_id()) {
    fetch.driver.unix_name = driver.getUnixName();
  } else {
    fetch.driver.host = driver.getHost();
    fetch.driver.port = driver.getPort();
  }
  return fetch;
}

std::shared_ptr<ProgramCache> Node::Impl::cache() {
  if (cache_) return cache_;
  try {
    const auto directory =
        options_.cache_directory.empty() ? default_cache_directory() : options_.cache_directory;
    cache_ = std::make_shared<ProgramCache>(directory, options_.cache_bytes);
  } catch (const Error& error) {
    log::warn(fmt::format("{}; programs of other machines cannot run here", error.what()));
  }
  return cache_;
}

void Node::Impl::on_job_started(wire::JobStarted::Reader started) {
  const JobId number{started.getJob()};
  LauncherOptions launch;
  launch.job = number;
  launch.program = read_program(started.getProgram());
  launch.fetch = fetch_from(started.getDriver(), number);
  launch.start_limit = options_.program_start;
  if (!options_.log_directory.empty())
    launch.log = fmt::format("{}/job-{}-zygote.log", options_.log_directory, number);
  const bool shipped = launch.program.machine != program_machine_id();

  Job job;
  job.launcher =
      std::make_shared<Launcher>(loop_, reaper_, shipped ? cache() : nullptr, std::move(launch));
  job.setup = {number,   transport::job_key(options_.token, number),
               cluster_, node_,
               host_,    started.getWorkerOutput()};
  if (options_.zygote >= 0) {
    job.launcher->adopt(os::UniqueFd(std::exchange(options_.zygote, -1)), options_.zygote_pid);
    zygote_announced_ = {};
  }
  if (auto [old, added] = jobs_.emplace(number, job); !added) job.launcher->close();
}

void Node::Impl::on_job_ended(JobId number) {
  auto job = jobs_.extract(number);
  if (job.empty()) return;
  workers_.stop_job(number, "its job has ended");
  job.mapped().launcher->close();
  store_->job_ended(number);
}

void Node::Impl::on_start_process(wire::StartProcess::Reader start) {
  const auto job = jobs_.find(JobId(start.getJob()));
  if (job == jobs_.end()) {
    return refuse_start(ProcessId(start.getProcess()),
                        fmt::format("job {} is not known on this node", start.getJob()));
  }
  std::vector<std::uint32_t> indices;
  for (auto index : start.getGpus()) indices.push_back(index);
  auto setup = job->second.setup;
  setup.threads = start.getThreads();
  workers_.start(
      ProcessId(start.getProcess()), std::move(setup),
      {"CUDA_VISIBLE_DEVICES=" + visible_devices(gpus_, indices), "CUDA_DEVICE_ORDER=PCI_BUS_ID"},
      job->second.launcher);
}

void Node::Impl::refuse_start(ProcessId process, const std::string& why) {
  transport::Outgoing message;
  auto exited = message.root().initProcessExited();
  exited.setProcess(process.value());
  runtime::write_failure(exited.initFailure(), failure_of(Failure::Kind::Program, why));
  to_head(message);
}

}  // namespace troupe::node
