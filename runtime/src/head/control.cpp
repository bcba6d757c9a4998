#include "head/control.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "calls/death_codec.hpp"
#include "head/check_names.hpp"
#include "wire/codec.hpp"

namespace troupe::head {
namespace {

constexpr std::chrono::milliseconds kFatePatience{
    1500};  ///< for a node to report the death that a peer has seen already
constexpr std::size_t kMostPathBytes = 4096;

}  // namespace

void Control::apply(const scheduler::Event& event) {
  state_.apply(event, Clock::now().time_since_epoch(), effects_);
  checks_.on_event([this] {
    const auto broken = state_.broken_invariant();
    if (!broken) return;
    std::fprintf(stderr, "the scheduler's state is inconsistent: %s\n", broken->c_str());
    std::abort();
  });
  if (!effects_.empty() && !std::exchange(flushing_, true))
    boost::asio::post(loop_, [this] { carry_out_effects(); });
}

void Control::carry_out_effects() {
  flushing_ = false;
  for (const auto& effect : std::exchange(effects_, {})) {
    std::visit([this](const auto& what) { carry_out(what); }, effect);
  }
}

// ---- nodes --------------------------------------------------------------------------------------

scheduler::NodeId Control::node_joined(wire::NodeJoin::Reader join,
                                       transport::ConnectionPtr connection) {
  // A node checks what it is given; who speaks its protocol may not.
  check_name("the node's name", join.getName());
  check_names(join.getResources(), join.getLabels());
  check_given(join.getLabels());
  const auto node = ++last_node_;
  const scheduler::Incarnation incarnation{identity_.epoch() << 32 | node.value()};
  scheduler::NodeJoined event{.node = node,
                              .incarnation = incarnation,
                              .name = join.getName(),
                              .total = {},
                              .gpus = 0,
                              .labels = {},
                              .own_labels = {}};
  for (auto amount : join.getResources())
    event.total.set(amount.getName().cStr(), scheduler::Amount::units(amount.getUnits()));
  for (auto label : join.getLabels()) event.labels.emplace_back(label.getKey(), label.getValue());
  // A number is given once.
  event.own_labels.emplace_back(config::kNodeLabel, fmt::to_string(node));
  event.gpus = join.getGpus().size();

  transport::Outgoing welcome;
  auto joined = welcome.root().initNodeJoined();
  joined.setNode(node.value());
  joined.setIncarnation(incarnation.value());
  joined.setCluster(identity_.cluster());
  auto note = why_too_many_cpus(join);
  const auto of_name = why_name_is_doubtful(event.name);
  note += (note.empty() || of_name.empty() ? "" : "; ") + of_name;
  joined.setNote(note);
  const bool resumes = join.getResumes() && !connection->is_unix();
  const auto secret = resumes ? transport::fresh_nonce() : transport::Bytes32{};
  if (resumes) joined.setSecret({secret.data(), secret.size()});
  connection->send(welcome);
  auto line = transport::ResumableLine::make(std::move(connection));
  if (resumes) line->keep();
  routes_.add_node(node,
                   {.line = std::move(line),
                    .incarnation = incarnation,
                    .name = event.name,
                    .host = config::printable(std::string(join.getHost())),
                    .store = join.hasStore() ? runtime::read_address(join.getStore()) : nullptr,
                    .logs = config::printable(std::string(join.getLogs()), kMostPathBytes),
                    .machine = join.getMachine(),
                    .offers_all_cpus = join.getOffersAllCpus(),
                    .jobs = {},
                    .heard = Clock::now(),
                    .secret = secret});

  log_(fmt::format("node {} joined: {} with {}{}", node, event.name,
                   scheduler::to_string(event.total),
                   event.gpus > 0 ? fmt::format(", gpu {}", event.gpus) : ""));
  if (!note.empty()) log_(fmt::format("node {} ({}): {}", node, event.name, note));
  apply(event);
  return node;
}

/// Two nodes of a machine of which one offers all of its cores.
std::string Control::why_too_many_cpus(wire::NodeJoin::Reader join) const {
  const bool all = join.getOffersAllCpus();
  for (const auto& [id, other] : routes_.nodes()) {
    if (other.machine != join.getMachine().cStr() || (!other.offers_all_cpus && !all)) continue;
    const auto which = !all                    ? fmt::format("node {}", id)
                       : other.offers_all_cpus ? std::string("each of the two")
                                               : std::string("this node");
    return fmt::format(
        "node {} ({}) is on the same machine, some of whose cores are offered twice now: more runs "
        "there at once than it has cores for; start {} with its part of them, with --cpus",
        id, other.name, which);
  }
  return {};
}

std::string Control::why_name_is_doubtful(const std::string& name) const {
  for (const auto& [id, other] : routes_.nodes()) {
    if (other.name != name) continue;
    return fmt::format(
        "node {} has the name '{}', too: only their numbers tell the two apart in statuses, logs "
        "and errors; start one of them with another --name",
        id, config::printable(name));
  }
  return {};
}

void Control::node_lost(scheduler::NodeId node, scheduler::Incarnation incarnation,
                        const std::string& why) {
  auto* lost = routes_.node(node);
  if (!lost || lost->incarnation != incarnation) return;
  log_(fmt::format("node {} ({}) is gone: {}", node, lost->name, why));
  const auto processes = routes_.processes_of_node(node);
  const auto what =
      fmt::format("was lost with node {} ({} at {}): {}", node, lost->name, lost->host, why);
  for (auto process : processes) {
    settle_fate(process, {.how = runtime::lost_with_node(process, what),
                          .calls = {.callers = {}, .complete = false}});
  }
  routes_.remove_node(node);
  routes_.node_lost(node, processes, what);
  owner_watches_.node_lost(node);
  node_watches_.node_lost(node);
  for (const auto watcher : node_watches_.ended(node)) tell_node_ended(watcher, node);
  if (const auto asked = node_ends_asked_.extract(node); !asked.empty()) {
    for (const auto& who : asked.mapped()) answer_done(who);
  }
  lost_actors_.node_lost(node, now_in_seconds());
  apply(scheduler::NodeLost{.node = node, .incarnation = incarnation, .reason = why});
}

// ---- drivers ------------------------------------------------------------------------------------

std::pair<JobId, ProcessId> Control::driver_registered(wire::RegisterDriver::Reader driver,
                                                       transport::ConnectionPtr connection) {
  const auto job = ++last_job_;
  const auto process = state_.new_process_id();
  auto address = std::make_shared<runtime::Address>(*runtime::read_address(driver.getAddress()));
  address->process = process;

  // The announcement is kept as a message: nodes get it as it came.
  auto kept = std::make_shared<capnp::MallocMessageBuilder>();
  kept->setRoot(driver.getProgram());
  routes_.add_job(job, {.connection = std::move(connection),
                        .announcement =
                            [kept, address](wire::JobStarted::Builder started) {
                              started.setProgram(kept->getRoot<wire::Program>());
                              runtime::write_address(started.initDriver(), *address);
                            },
                        .shows_output = driver.getWorkerOutput(),
                        .heard = Clock::now()});
  routes_.add_process(process,
                      {.node = {}, .job = job, .address = address, .pid = driver.getPid()});
  jobs_[job] = {.driver = process,
                .name = config::printable(std::string(driver.getName())),
                .pid = driver.getPid()};

  log_(fmt::format("job {} started: {} (pid {})", job, jobs_[job].name, driver.getPid()));
  apply(scheduler::JobStarted{.job = job,
                              .driver = process,
                              .weight = driver.getWeight(),
                              .at_command_line = driver.getProgram().getAtCommandLine()});
  return {job, process};
}

void Control::driver_leaves(JobId job) {
  if (const auto found = jobs_.find(job); found != jobs_.end()) found->second.leaves = true;
}

void Control::driver_gone(JobId job, const std::string& why) {
  auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  log_(fmt::format("job {} ended{}", job, found->second.leaves ? "" : ": " + why));
  Failure how{.kind = Failure::Kind::ProcessDied,
              .message = fmt::format("the driver (pid {}) has ended", found->second.pid)};
  settle_fate(found->second.driver, {.how = std::move(how), .calls = {}});
  // Also of its workers.
  std::erase_if(searches_, [job](const Search& search) { return search.job == job; });
  jobs_.erase(found);
  apply(scheduler::JobEnded{.job = job, .reason = why});
  // After the effects that stop its processes: a node gives up the job's zygote then.
  boost::asio::post(loop_, [this, job] { routes_.remove_job(job); });
}

// ---- worker processes ---------------------------------------------------------------------------

void Control::process_ready(scheduler::NodeId node, wire::ProcessReady::Reader ready) {
  const ProcessId id{ready.getProcess()};
  auto* process = routes_.process(id);
  if (!process || process->node != node) return;
  process->address = runtime::read_address(ready.getAddress());
  process->pid = ready.getPid();
  apply(scheduler::ProcessReady{
      .process = id, .node = node, .incarnation = routes_.node(node)->incarnation});
}

void Control::process_exited(scheduler::NodeId node, wire::ProcessExited::Reader exited) {
  const ProcessId id{exited.getProcess()};
  const auto* process = routes_.process(id);
  if (!process || process->node != node) return;
  auto how = runtime::read_failure(exited.getFailure());
  if (auto why = exit_records_.stopped_because(id); !why.empty())
    how.message = fmt::format("process {} was stopped: {}", id, why);
  const auto cause = how.message;
  settle_fate(id, {.how = std::move(how), .calls = runtime::read_callers(exited)});
  apply(scheduler::ProcessExited{
      .process = id, .node = node, .incarnation = routes_.node(node)->incarnation, .cause = cause});
}

void Control::settle_fate(ProcessId process, ExitRecords::End end) {
  if (auto asked = fates_asked_.extract(process); !asked.empty()) {
    for (const auto& [who, until] : asked.mapped()) {
      routes_.tell(who.asker, who.id, [&, asker = who.asker](wire::HeadNotice::Builder tell) {
        runtime::write_death(tell, tell.initFate(), end.death_for(asker));
      });
    }
  }
  for (const auto node : owner_watches_.ended(process)) tell_owner_ended(node, process);
  forget_asks_of(process);
  const bool constructs = std::ranges::any_of(
      detached_, [process](const auto& entry) { return entry.second.creator == process; });
  if (constructs) boost::asio::post(loop_, [this] { end_detached(); });
  exit_records_.stopped_because(process);
  exit_records_.process_ended(process, std::move(end));
  routes_.remove_process(process);
}

/// The scheduler drops them too, without an answer.
void Control::forget_asks_of(ProcessId process) {
  const auto first = request_of_.lower_bound({process, {}});
  auto last = first;
  for (; last != request_of_.end() && last->first.first == process; ++last)
    requests_.erase(last->second);
  request_of_.erase(first, last);
  std::erase_if(searches_,
                [process](const Search& search) { return search.asked.asker == process; });
  std::erase_if(name_waits_,
                [process](const NameWait& wait) { return wait.asked.asker == process; });
  for (auto& [node, asked] : node_ends_asked_) {
    std::erase_if(asked, [process](const Asked& who) { return who.asker == process; });
  }
  std::erase_if(node_ends_asked_, [](const auto& entry) { return entry.second.empty(); });
  resuming_.erase(process);
  holders_.erase(process);
}

void Control::owner_watched(scheduler::NodeId node, ProcessId owner) {
  if (!routes_.process(owner)) return tell_owner_ended(node, owner);
  owner_watches_.add(owner, node);
}

void Control::tell_owner_ended(scheduler::NodeId id, ProcessId owner) {
  const auto* node = routes_.node(id);
  if (!node) return;
  transport::Outgoing message;
  message.root().setOwnerEnded(owner.value());
  node->line->send(message);
}

void Control::node_watched(scheduler::NodeId node, scheduler::NodeId watched) {
  if (!routes_.node(watched)) return tell_node_ended(node, watched);
  node_watches_.add(watched, node);
}

void Control::tell_node_ended(scheduler::NodeId id, scheduler::NodeId ended) {
  const auto* node = routes_.node(id);
  if (!node) return;
  transport::Outgoing message;
  message.root().setNodeEnded(ended.value());
  node->line->send(message);
}

/// A node names what its own processes wrote, and no more: what its word lets others free lies with
/// it.
void Control::orphaned(scheduler::NodeId id, wire::Orphans::Reader orphans) {
  const auto* node = routes_.node(id);
  const ProcessId owner_id{orphans.getOwner()};
  const auto* writer = routes_.process(ProcessId(orphans.getWriter()));
  const auto* owner = routes_.process(owner_id);
  if (!node || !node->store || !writer || !owner || writer->node != id || writer->job != owner->job)
    return;
  auto at = *node->store;
  at.node = id;
  routes_.tell(owner_id, {}, [&](wire::HeadNotice::Builder tell) {
    tell.setOrphans(orphans);
    runtime::write_address(tell.getOrphans().initAt(), at);
  });
}

/// A node that is stopped or starved reports no death: only what it says later speaks for the
/// process. One that stays silent is lost, and its processes with it.
bool Control::has_spoken_since(ProcessId id, Clock::time_point time) {
  const auto* process = routes_.process(id);
  if (process && !process->node) return has_driver_spoken_since(process->job, time);
  const auto* node = process ? routes_.node(process->node) : nullptr;
  return !node || node->beat > time;
}

void Control::answer_overdue_fates() {
  const auto now = Clock::now();
  for (auto& [process, asked] : fates_asked_) {
    std::erase_if(asked, [&, id = process](const FateAsked& waiting) {
      if (waiting.until > now || !has_spoken_since(id, waiting.until)) return false;
      routes_.tell(waiting.asked.asker, waiting.asked.id, [&](wire::HeadNotice::Builder tell) {
        runtime::write_failure(
            tell.initFate(),
            {.kind = Failure::Kind::Disconnected,
             .message =
                 fmt::format("process {} cannot be reached, but its node says that it runs", id)});
      });
      return true;
    });
  }
  std::erase_if(fates_asked_, [](const auto& entry) { return entry.second.empty(); });
}

void Control::ask_fate(const Asked& asked, ProcessId process) {
  const auto* ended = exit_records_.process(process);
  if (!ended && routes_.process(process)) {
    fates_asked_[process].push_back({asked, Clock::now() + kFatePatience});
    return;
  }
  const runtime::Death unknown(
      Failure{.kind = Failure::Kind::ProcessDied,
              .message = fmt::format("process {} ended long ago", process)});
  routes_.tell(asked.asker, asked.id, [&](wire::HeadNotice::Builder tell) {
    runtime::write_death(tell, tell.initFate(), ended ? ended->death_for(asked.asker) : unknown);
  });
}

void Control::tick() {
  answer_overdue_fates();
  forgive_own_silence();
  look_for_silent_nodes();
  look_for_silent_drivers();
  end_detached();
  std::erase_if(searches_, [this](const Search& search) { return answer_search(search); });
  apply(scheduler::Tick{});
}

}  // namespace troupe::head
