#include "output/trackers/trackers.hpp"

#include <chrono>
#include <stdexcept>

#include "output/tensorboard/event_files.hpp"

namespace troupe::tune {

Trackers::Trackers(const detail::Plan& plan) : plan_{plan} {
  if (plan.tensorboard && plan.storage.empty() && plan.resume_folder.empty()) {
    throw std::invalid_argument(
        "tune: .tensorboard writes into the run's folder, and without .storage there is none; "
        "name a folder");
  }
}

void Trackers::open(const std::filesystem::path& folder) {
  if (!plan_.tensorboard) return;
  clock_.emplace(folder);
  const auto title = folder.parent_path().filename() / folder.filename();
  trackers_.push_back(
      std::make_unique<EventFiles>(EventFiles::Run{.folder = folder / "tensorboard",
                                                   .title = title.string(),
                                                   .driver = clock_->drivers() + 1,
                                                   .began = std::chrono::system_clock::now()},
                                   plan_.space, plan_.objective));
}

void Trackers::start(Seconds now) {
  if (is_started_ || !clock_) return;
  clock_->start(now, std::chrono::system_clock::now());
  is_started_ = true;
}

void Trackers::see_again(const Event& event, const Trial* trial) {
  if (trial == nullptr) return;
  for (const auto& tracker : trackers_) tracker->see(event, *trial, clock_->at(event.now));
}

void Trackers::see(const Event& event, const Trial* trial) {
  start(event.now);
  see_again(event, trial);
}

void Trackers::tick(const Note& note) {
  for (const auto& tracker : trackers_) {
    for (const auto& notice : tracker->tick()) note(notice);
  }
}

void Trackers::conclude(const Experiment& experiment, Seconds now, const Note& note) {
  start(now);
  for (const auto& tracker : trackers_) {
    for (const auto& notice : tracker->conclude(experiment, clock_->at(now))) note(notice);
  }
}

}  // namespace troupe::tune
