#include "run/gang_run.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/ref.hpp>

#include "plan/clock.hpp"
#include "plan/environment.hpp"
#include "run/send_progress.hpp"

namespace troupe::launch {
namespace {

constexpr std::chrono::milliseconds kPollEnd{100};
constexpr std::chrono::seconds kHostAnswer{60};  // of a host that only starts programs
constexpr std::chrono::minutes kUnpacks{10};     // of one that fetches and unpacks files before
constexpr std::size_t kMostUnderWay = 4;         // pieces of a folder, to each node
constexpr std::chrono::seconds kPatience{5};     // with a host, after what it runs must have ended

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

/// Until each has answered, or one has failed. -> false: the run is to end before that.
template <class T>
bool await(const std::vector<Ref<T>>& answers, const std::function<int()>& end_now,
           std::chrono::seconds patience = kHostAnswer) {
  os::RunningTime left(patience);
  for (;;) {
    Waited<Ref<T>> found;
    left.pass(
        [&](std::chrono::milliseconds slice) { found = wait(answers, answers.size(), slice); });
    for (const auto& answer : found.ready) answer.get();  // throws what it failed with
    if (found.unready.empty()) return true;
    if (end_now() > 0) return false;
    if (!left.is_over()) continue;
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("a node has not begun to start its programs within {} s: `troupe "
                                  "status` shows whether it is there",
                                  patience.count())});
  }
}

/// A host that takes a folder for its node.
struct Receiver {
  std::size_t host = 0;
  std::size_t called = 0;  // pieces
  std::deque<Ref<void>> under_way = {};
};

/// One host for each node that lacks the folder.
std::vector<Receiver> receivers_among(const std::vector<HostFacts>& facts) {
  std::set<std::uint32_t> nodes;
  std::vector<Receiver> receivers;
  for (std::size_t host = 0; host < facts.size(); ++host) {
    if (!facts[host].has_workdir && nodes.insert(facts[host].node).second)
      receivers.push_back({.host = host});
  }
  return receivers;
}

}  // namespace

GangRun::GangRun(const LaunchOptions& options, PlacedHosts placed, Printer& printer)
    : options_(options),
      gang_(std::move(placed.hosts)),
      per_host_(placed.per_host),
      printer_(printer) {}

GangRun::~GangRun() { gang_.kill(); }

bool GangRun::run(const Shipment& shipment, const std::string& run_id, const AttemptNumber& number,
                  const GangCallbacks& callbacks) {
  if (!start(shipment, run_id, number, callbacks.end_now)) return false;
  callbacks.started(plan_);
  int ended = 0;
  while (!attempt_->is_over()) {
    const auto begun = Clock::now();
    look(kPollEnd);
    if (ending_) ending_->passed(Clock::now() - begun);
    const int end = std::max(unheard_ ? 1 : 0, callbacks.end_now());
    if (end > 0) attempt_->interrupt();
    if (attempt_->can_grow() && callbacks.grow_now(plan_)) attempt_->grow();
    if (attempt_->is_stopping() && (!ending_ || end > ended))
      stop(end > 1 ? std::chrono::milliseconds(0) : milliseconds(options_.grace_s));
    ended = end;
    if (ending_ && ending_->is_over()) {
      for (std::size_t host = 0; host < hosts_.size(); ++host) {
        if (!hosts_[host].over) on_lost(host, "its host did not say that it has ended");
      }
    }
  }
  leave();
  gang_.kill();  // whoever else waits for its place has it, though the output is not read yet
  return true;
}

/// Past the bound what a rank writes waits with its host, and then the rank in its write. Of a host
/// whose programs have ended all is taken, which is little.
bool GangRun::takes_output(const Host& host) const {
  return host.exited == per_host_ || printer_.waiting() < Printer::kMostUnread;
}

void GangRun::print(std::chrono::milliseconds patience) {
  if (printer_.flush(patience) == Outlet::State::Broken) unheard_ = true;
}

/// Has the hosts remove what they wrote. One that does not is killed all the same.
void GangRun::leave() {
  const auto left = gang_.all<&RankHost::leave>();
  wait(left, left.size(), kPatience);
}

bool GangRun::start(const Shipment& shipment, const std::string& run_id,
                    const AttemptNumber& number, const std::function<int()>& end_now) {
  const auto asked = gang_.all<&RankHost::facts>(ports_of_host(per_host_), shipment.workdir);
  if (!await(asked, end_now)) return false;
  const auto facts = get(asked);
  plan_ = plan_gang(facts, per_host_);
  plan_.run_id = run_id;
  plan_.restart = number.restarts;
  plan_.max_restarts = options_.max_restarts;
  plan_.cpus = options_.cpus < 0 ? 1 : options_.cpus;
  plan_.isolate_gpus = options_.isolate_gpus;
  const int ranks = static_cast<int>(plan_.ranks.size());
  printer_.begin(ranks, number.folder());
  attempt_.emplace(ranks);

  const auto of_user = merged(threads_of_user(shipment.environment), options_.variables);
  if (!send(shipment, facts, end_now)) return false;
  std::vector<Ref<void>> started;
  for (std::size_t host = 0; host < gang_.size(); ++host) {
    HostOrder order{.arguments = options_.arguments,
                    .environment = shipment.environment,
                    .directory = options_.directory,
                    .workdir = shipment.workdir,
                    .run_id = fmt::format("{}-{}", run_id, number.index())};
    for (int local = 0; local < per_host_; ++local) {
      order.ranks.push_back({merged(rank_environment(plan_, rank_of(host, local)), of_user)});
    }
    order.wants_result = host == 0 && !options_.result_file.empty();
    started.push_back(gang_.rank(host).call<&RankHost::start>(std::move(order), shipment.attached));
    hosts_.push_back({gang_.rank(host).call<&RankHost::next>(true)});
  }
  const bool writes_files = !shipment.workdir.empty() || !options_.attached_file.empty();
  if (!await(started, end_now, writes_files ? kUnpacks : kHostAnswer)) return false;
  get(started);
  return true;
}

/// Has each node take the folder that it lacks. -> false: the run is to end before that.
bool GangRun::send(const Shipment& shipment, const std::vector<HostFacts>& facts,
                   const std::function<int()>& end_now) {
  const auto& pieces = shipment.archive;
  auto receivers = receivers_among(facts);
  SendProgress progress(receivers.size(), pieces.size(), shipment.archive_bytes, Clock::now());
  while (!progress.is_over()) {
    std::vector<AnyRef> awaited;
    for (auto& to : receivers) {
      for (; to.called < pieces.size() && to.under_way.size() < kMostUnderWay; ++to.called) {
        to.under_way.push_back(gang_.rank(to.host).call<&RankHost::receive>(
            shipment.workdir, to.called + 1 == pieces.size(), pieces[to.called]));
      }
      if (!to.under_way.empty()) awaited.emplace_back(to.under_way.front());
    }
    wait(awaited, 1, kPollEnd);
    for (std::size_t node = 0; node < receivers.size(); ++node) {
      auto& under_way = receivers[node].under_way;
      while (!under_way.empty() && under_way.front().wait_for(std::chrono::milliseconds(0))) {
        under_way.front().get();  // throws what it failed with
        under_way.pop_front();
        progress.on_piece(node, Clock::now());
      }
    }
    if (end_now() > 0) return false;
    if (progress.is_stalled(Clock::now())) {
      raise(
          {.kind = Failure::Kind::TimedOut,
           .message = fmt::format("no node has taken a part of the working directory for {} s; {}: "
                                  "`troupe status` shows whether the nodes are there",
                                  SendProgress::kMostPause.count(), progress.in_words())});
    }
    const auto line = progress.line(Clock::now());
    if (!line.empty()) printer_.say(fmt::format("troupe run: {}\n", line));
    print(std::chrono::milliseconds(0));
  }
  return true;
}

/// Waits until a host has something to tell, and takes what is there.
void GangRun::look(std::chrono::milliseconds patience) {
  print(attempt_->is_stopping() ? std::chrono::milliseconds(0) : patience);
  std::vector<AnyRef> awaited;
  for (const auto& host : hosts_) {
    if (!host.over) awaited.emplace_back(host.news);
  }
  wait(awaited, 1, patience);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    auto& state = hosts_[host];
    if (state.over || !state.news.wait_for(std::chrono::milliseconds(0))) continue;
    try {
      on_news(host, state.news.get());
      if (!state.over) state.news = gang_.rank(host).call<&RankHost::next>(takes_output(state));
    } catch (const Error& error) {
      on_lost(host, error.what());
    }
  }
  print(std::chrono::milliseconds(0));
}

void GangRun::on_news(std::size_t host, HostNews news) {
  for (const auto& written : news.written)
    printer_.print(rank_of(host, written.local), written.to_error, written.text);
  hosts_[host].exited += static_cast<int>(news.exits.size());
  for (const auto& exit : news.exits) attempt_->on_exit(rank_of(host, exit.local), exit);
  for (const auto& end : news.ends) attempt_->on_end(rank_of(host, end.local), end);
  hosts_[host].over = news.over;
  if (host != 0) return;
  if (news.has_result) result_ = std::move(news.result);
  why_no_result_ = std::move(news.why_no_result);
}

void GangRun::on_lost(std::size_t host, const std::string& why) {
  for (int local = 0; local < per_host_; ++local)
    attempt_->on_lost(rank_of(host, local), why, now_in_seconds());
  hosts_[host].over = true;
}

void GangRun::stop(std::chrono::milliseconds grace) {
  ending_.emplace(grace + kPatience);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host].over)
      gang_.rank(host).call<&RankHost::stop>(static_cast<std::uint32_t>(grace.count()));
  }
}

}  // namespace troupe::launch
