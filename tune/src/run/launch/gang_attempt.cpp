#include "run/launch/gang_attempt.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "run/fault.hpp"

namespace troupe::tune {

using detail::CheckpointOrigins;
using troupe::detail::object_of;

GangAttempt::GangAttempt(TrialId trial, detail::Work work, std::unique_ptr<detail::Workers> workers,
                         CheckpointOrigins& origins, KnownNodes& nodes, Slots& slots)
    : trial_(trial),
      work_(std::move(work)),
      workers_(std::move(workers)),
      origins_(origins),
      nodes_(nodes),
      slots_(slots),
      placed_(workers_->placed()) {}

GangAttempt::~GangAttempt() {
  if (packed_) packed_.cancel();
  give_up_copies();
  slots_.give_back(trial_);
}

std::optional<GangEvent> GangAttempt::step() {
  while (!event_ && advance()) continue;
  return std::exchange(event_, std::nullopt);
}

/// -> whether there was something to do.
bool GangAttempt::advance() {
  if (told_to_end_) return on_told_to_end();
  switch (stage_) {
    case Stage::Asked:
      return on_asked();
    case Stage::Naming:
      return on_naming();
    case Stage::Placed:
      return on_placed();
    case Stage::Looking:
      return on_looking();
    case Stage::Packing:
      return on_packing();
    case Stage::Receiving:
      return on_receiving();
    case Stage::Running:
    case Stage::Finishing:
      return on_run();
    case Stage::Settling:
      return on_settling();
  }
  return false;
}

void GangAttempt::say(GangEvent::Kind kind) { event_ = GangEvent{.kind = kind, .trial = trial_}; }

bool GangAttempt::on_asked() {
  if (!placed_.ready()) return false;
  workers_->take();
  stage_ = Stage::Naming;
  return true;
}

/// The head has named most nodes before: then this takes no time.
bool GangAttempt::on_naming() {
  std::vector<std::string> names;
  for (const auto number : workers_->nodes()) {
    auto name = nodes_.name_of(number);
    if (!name) return false;
    names.push_back(*std::move(name));
  }
  places_ = slots_.take(trial_, names);
  place();
  return true;
}

void GangAttempt::add_to(InUse& in_use) const {
  if (stage_ == Stage::Asked) return;
  const auto ranks = workers_->size();
  const auto [cpus, gpus] = workers_->needs();
  in_use.ranks += ranks;
  in_use.cpus += static_cast<double>(ranks) * cpus;
  in_use.gpus += static_cast<double>(ranks) * gpus;
}

troupe::detail::ObjectPtr GangAttempt::ask_for_signs() const {
  return stage_ == Stage::Asked ? nullptr : workers_->ask_for_signs();
}

/// Where a node has a copy of the checkpoint, but for the node's number.
std::string GangAttempt::copies() const {
  const auto received = work_.info.storage / "received";
  return received / (work_.attempt == 0 ? "node-" : fmt::format("attempt-{}-node-", work_.attempt));
}

/// Of the attempt that is over.
void GangAttempt::give_up_copies() {
  const bool has_copies = stage_ >= Stage::Receiving && work_.attempt > 0;
  for (const auto rank : has_copies ? checkpoint_.receivers : std::vector<std::size_t>()) {
    const auto copy = CheckpointOrigins::named(checkpoint_.paths[rank], view_.ranks[rank]);
    origins_.add_spare_copy(copy);
    // One that was being written when its gang was ended.
    if (stage_ == Stage::Receiving) origins_.add_spare_copy(copy + detail::kBeingReceived);
  }
}

/// The gang is there, for the first attempt or for the next one.
void GangAttempt::place() {
  calls_ = {};
  looks_.clear();
  view_ = {};
  checkpoint_ = {.paths = std::vector(workers_->size(), checkpoint_name())};
  packed_ = {};
  stage_ = Stage::Placed;
  say(GangEvent::Kind::Placed);
  event_->places = places_;
}

bool GangAttempt::on_placed() {
  if (work_.marker.empty()) {
    begin_run();
    return true;
  }
  for (std::size_t rank = 0; rank < workers_->size(); ++rank) {
    looks_.push_back(
        workers_->look(rank, work_.marker, CheckpointOrigins::path_of(checkpoint_name())));
    calls_.add(object_of(looks_.back()));
  }
  stage_ = Stage::Looking;
  return true;
}

bool GangAttempt::on_looking() {
  calls_.look();
  if (!calls_.done()) return false;
  for (const auto& look : looks_) view_.ranks.push_back(look.get());
  if (!view_.is_shared() && origins_.should_say_unshared()) {
    say(GangEvent::Kind::Notice);
    event_->text = detail::unshared_notice(view_, work_.marker);
  }
  const auto& name = checkpoint_name();
  if (!name.empty()) checkpoint_ = detail::plan_checkpoint(name, view_, copies(), origins_);
  if (!checkpoint_.from) {
    begin_run();
  } else {
    packed_ = detail::pack_on(*checkpoint_.from, CheckpointOrigins::path_of(name));
    stage_ = Stage::Packing;
  }
  return true;
}

bool GangAttempt::on_packing() {
  if (!packed_.ready()) return false;
  detail::check_packed(packed_, *checkpoint_.from, CheckpointOrigins::path_of(checkpoint_name()));
  for (const auto rank : checkpoint_.receivers) {
    calls_.add(object_of(workers_->receive(rank, packed_, checkpoint_.paths[rank])));
  }
  stage_ = Stage::Receiving;
  return true;
}

bool GangAttempt::on_receiving() {
  calls_.look();
  if (!calls_.done()) return false;
  packed_ = {};
  begin_run();
  return true;
}

void GangAttempt::begin_run() {
  const bool as_made = fresh_ && std::ranges::count(checkpoint_.paths, checkpoint_name()) ==
                                     std::ssize(checkpoint_.paths);
  for (std::size_t rank = 0; rank < workers_->size() && !as_made; ++rank) {
    auto own = work_;
    own.info.restore_from = checkpoint_.paths[rank];
    workers_->renew(rank, own);
  }
  run_ = std::make_unique<troupe::detail::RunProgress>(*workers_);
  stage_ = Stage::Running;
}

bool GangAttempt::on_run() {
  try {
    return look_at_run();
  } catch (const TaskError&) {
    // What was thrown on the way out of an attempt that is given up, or out of a report after its
    // Stop, counts for nothing.
    if (next_) {
      stage_ = Stage::Settling;
    } else if (stage_ == Stage::Finishing && !returned_) {
      say(GangEvent::Kind::Ended);
    } else {
      throw;
    }
    return true;
  }
}

bool GangAttempt::look_at_run() {
  if (stage_ == Stage::Finishing) {
    if (!run_->is_over()) return false;
    if (next_) {
      stage_ = Stage::Settling;
    } else {
      say(GangEvent::Kind::Ended);
    }
    return true;
  }
  const auto event = run_->poll();
  if (!event || event->kind == detail::TrialEvent::Kind::Progress) return false;
  if (event->kind == detail::TrialEvent::Kind::Finished) {
    returned_ = event->returned;
    stage_ = Stage::Finishing;
    return true;
  }
  say(GangEvent::Kind::Reported);
  event_->k = static_cast<std::int64_t>(event->index) + 1;
  event_->metrics = event->metrics;
  event_->checkpoint = origins_.named(event->checkpoint, view_);
  return true;
}

/// A rank that failed is known before the others have ended, and the next attempt needs all of
/// them.
bool GangAttempt::on_settling() {
  if (!run_->is_settled()) return false;
  run_.reset();
  give_up_copies();
  work_ = *std::exchange(next_, std::nullopt);
  fresh_ = false;
  place();
  return true;
}

bool GangAttempt::on_told_to_end() {
  if (!run_->wind_up()) return false;
  event_ = ended_by_search(trial_);
  return true;
}

void GangAttempt::collect(std::vector<troupe::detail::ObjectPtr>& objects) const {
  switch (stage_) {
    case Stage::Asked:
      return objects.push_back(object_of(placed_));
    case Stage::Naming:
      if (nodes_.answer()) objects.push_back(nodes_.answer());
      return;
    case Stage::Packing:
      return objects.push_back(object_of(packed_));
    case Stage::Running:
    case Stage::Finishing:
    case Stage::Settling:
      return run_->collect(objects);
    default:
      return calls_.collect(objects);
  }
}

std::optional<GangAttempt::TimePoint> GangAttempt::look_again() const {
  if (stage_ == Stage::Settling || told_to_end_) return std::nullopt;
  // Another attempt has taken the answer since this one looked.
  if (stage_ == Stage::Naming && !nodes_.answer()) return TimePoint::clock::now();
  return run_ ? run_->look_again() : calls_.look_again();
}

void GangAttempt::answer(Verdict verdict) {
  if (!told_to_end_) run_->answer(verdict);
}

void GangAttempt::replace(detail::Work next) {
  if (told_to_end_) return;
  next_ = std::move(next);
  run_->answer(Verdict::Stop);
}

/// A report that waits for its verdict has it: the one that is on its way counts no more.
bool GangAttempt::tell_to_end() {
  if (!run_) return false;
  if (std::exchange(told_to_end_, true)) return true;
  workers_->tell_to_end();
  if (stage_ == Stage::Running && !run_->expects_event()) run_->answer(Verdict::Stop);
  return true;
}

}  // namespace troupe::tune
