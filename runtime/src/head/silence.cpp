// Who has said nothing for long. A node that is silent is lost: its processes would hold what
// others could use. A driver's host that is gone closes its connection (transport/liveness.hpp); a
// driver that is merely stopped keeps its job for much longer.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "head/control.hpp"
#include "transport/liveness.hpp"

namespace troupe::head {
namespace {

/// A driver beats every second: it is then said, once, that it does not.
constexpr std::chrono::seconds kWorthSaying{10};
/// The answer to its last beat is acknowledged within this, also where it is cut off then.
constexpr std::chrono::seconds kLastBeat{2};

/// The kernel of its machine has, since the driver said something last.
bool has_machine_answered(const transport::ConnectionPtr& connection,
                          std::chrono::steady_clock::duration silence) {
  const auto since = transport::time_since_answer(connection->descriptor());
  return since && *since < silence - kLastBeat;
}

}  // namespace

void Control::forgive_own_silence() {
  const auto now = Clock::now();
  const auto stood = stall_detector_.came(now);
  stall_detector_.expect(now + kTick);
  for (auto& [id, node] : routes_.nodes()) node.heard = std::min(now, node.heard + stood);
  for (auto& [id, job] : routes_.jobs()) job.heard = std::min(now, job.heard + stood);
}

void Control::look_for_silent_nodes() {
  const auto now = Clock::now();
  std::vector<std::pair<NodeId, scheduler::Incarnation>> silent;
  for (const auto& [id, node] : routes_.nodes()) {
    if (now - node.heard > silence_.node) silent.emplace_back(id, node.incarnation);
  }
  for (const auto& [id, incarnation] : silent) {
    const auto& node = *routes_.node(id);
    const auto& connection = node.line->connection();
    const auto* what =
        !connection ? "and its connection has broken, in place of which it has made "
                      "no other one"
        : has_machine_answered(connection, now - node.heard)
            ? "but its machine answers: the node stands still, stopped or starved of "
              "CPU time"
            : "nor was anything heard of its machine";
    node.line->close();
    node_lost(id, incarnation,
              fmt::format("no sign of life for {} ms, {}", silence_.node.count(), what));
  }
}

void Control::node_stood_still(NodeId id, std::uint32_t milliseconds) {
  if (const auto* node = routes_.node(id)) {
    log_(fmt::format("node {} ({}) stood still for {} s and goes on", id, node->name,
                     milliseconds / 1000));
  }
}

void Control::driver_spoke(JobId job) {
  const auto found = routes_.jobs().find(job);
  if (found == routes_.jobs().end()) return;
  found->second.heard = Clock::now();
  if (std::exchange(found->second.is_silent, false))
    log_(fmt::format("job {}: its driver goes on", job));
}

bool Control::has_driver_spoken_since(JobId job, Clock::time_point time) const {
  const auto found = routes_.jobs().find(job);
  return found == routes_.jobs().end() || !beats(found->second) || found->second.heard > time;
}

/// On its own machine, through a unix socket, a driver's end is seen at once, and its silence says
/// nothing.
bool Control::beats(const Routes::Job& job) {
  return job.connection && !job.connection->local_host().empty();
}

void Control::look_for_silent_drivers() {
  const auto now = Clock::now();
  std::vector<JobId> silent;
  for (auto& [id, job] : routes_.jobs()) {
    if (!beats(job) || !jobs_.contains(id)) continue;
    const auto silence = now - job.heard;
    if (silence > silence_.driver) silent.push_back(id);
    if (silence < kWorthSaying || std::exchange(job.is_silent, true)) continue;
    log_(fmt::format(
        "job {}: its driver (pid {}) has said nothing for {} s, {}. Its job is kept for "
        "{} s of silence",
        id, jobs_[id].pid, kWorthSaying.count(),
        has_machine_answered(job.connection, silence)
            ? "but its machine answers: it is stopped, as in a debugger"
            : "nor was anything heard of its machine",
        std::chrono::duration_cast<std::chrono::seconds>(silence_.driver).count()));
  }
  for (const auto id : silent) {
    routes_.jobs().at(id).connection->close();
    driver_gone(id, fmt::format("its driver has said nothing for {} ms", silence_.driver.count()));
  }
}

}  // namespace troupe::head
