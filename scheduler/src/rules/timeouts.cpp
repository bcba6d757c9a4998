#include "cluster.hpp"

/// What happens because time has passed: idle processes are stopped, requests that had to wait too
/// long are refused.
namespace troupe::scheduler {

void Cluster::pass_time(bool is_tick) {
  stop_idle();
  run_in_debt();
  refuse_unmet();
  departed_.forget_before(now_ - options_.rejoin_patience);
  refuse_bounded();
  review_reservations(is_tick);
}

void Cluster::stop_idle() {
  for (auto* process : spares_.idle_since(now_ - options_.idle_time)) {
    if (!process->is_needed()) {
      stop(*process, "nobody has used it for the idle time");
      continue;
    }
    // Its end would be the end of what others use: it stays, and is looked at again later.
    spares_.renew(*process, now_);
  }
}

void Cluster::refuse_unmet() {
  for (auto* shape : queue_.shapes()) {
    if (shape->possible) continue;
    std::string because;
    for (auto* request : shape->everyone()) {
      if (request->patient_until > now_) continue;
      if (because.empty()) because = refusal_after_patience(*request->shape);
      refuse(*request, Refused::Kind::Impossible, because);
    }
  }
}

}  // namespace troupe::scheduler
