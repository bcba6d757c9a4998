#include <utility>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::became_ready(Process& process) {
  if (process.state != ProcessState::InUse) return;
  if (process.role == Role::Lease) grant(leases_.at(process.subject.lease()));
  if (process.role == Role::Actor) place(actors_.at(process.subject.actor()));
  if (process.role == Role::Rank) {
    auto& gang = gangs_.at(process.subject.gang());
    if (++gang.ready == gang.size) place(gang);
  }
}

void Cluster::grant(Lease& lease) {
  auto& request = *std::exchange(lease.request, nullptr);
  emit(LeaseGranted{request.id, lease.requester->id, lease.id, lease.process->id});
  forget(request);
  ages_.grant(lease, now_);
}

void Cluster::place(Actor& actor) {
  emit(ActorPlaced{actor.request, actor.requester, actor.id, actor.process, actor.type});
  forget(requests_.at(std::exchange(actor.request, {})));
  actor.stage = Stage::Placed;
}

void Cluster::place(Gang& gang) {
  emit(GangPlaced{gang.request, gang.requester, gang.id, gang.members});
  forget(requests_.at(std::exchange(gang.request, {})));
  gang.stage = Stage::Placed;
  gang.alive = gang.size;
}

}  // namespace troupe::scheduler
