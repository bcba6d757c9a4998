#include <troupe/scheduler/state.hpp>

#include "cluster.hpp"

namespace troupe::scheduler {

struct State::Impl {
  explicit Impl(Options options) : cluster{options} {}
  Cluster cluster;
};

State::State(Options options) : impl_{std::make_unique<Impl>(options)} {}
State::~State() = default;
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;

std::vector<Effect> State::apply(const Event& event, TimePoint now) {
  std::vector<Effect> effects;
  apply(event, now, effects);
  return effects;
}
void State::apply(const Event& event, TimePoint now, std::vector<Effect>& effects) {
  impl_->cluster.apply(event, now, effects);
}
ProcessId State::new_process_id() { return impl_->cluster.new_process_id(); }

std::vector<PendingView> State::pending() const { return impl_->cluster.pending(); }
std::vector<NodeView> State::nodes() const { return impl_->cluster.nodes(); }
std::vector<ActorView> State::actors() const { return impl_->cluster.actors(); }
std::vector<GangView> State::gangs() const { return impl_->cluster.gangs(); }
std::vector<JobView> State::jobs() const { return impl_->cluster.jobs(); }
std::vector<ProcessView> State::processes() const { return impl_->cluster.processes(); }
std::optional<ProcessView> State::process(ProcessId process) const {
  return impl_->cluster.process(process);
}
std::optional<ActorView> State::actor(ActorId actor) const { return impl_->cluster.actor(actor); }
std::optional<ActorView> State::actor_named(JobId job, std::string_view name) const {
  return impl_->cluster.actor_named(job, name);
}
std::optional<GangView> State::gang(GangId gang) const { return impl_->cluster.gang(gang); }
std::optional<std::string> State::broken_invariant() const {
  return impl_->cluster.broken_invariant();
}

}  // namespace troupe::scheduler
