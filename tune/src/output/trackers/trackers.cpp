#include "output/trackers/trackers.hpp"

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include <troupe/tune/detail/checks.hpp>

#include "output/mlflow/libcurl.hpp"
#include "output/mlflow/mlflow_tracker.hpp"
#include "output/tensorboard/event_files.hpp"
#include "output/trackers/earlier_reports.hpp"
#include "text/json.hpp"

namespace troupe::tune {

void detail::check(const Mlflow& mlflow) {
  if (mlflow.url.empty()) return;
  ServerUrl::parse(mlflow.url);
  MlflowAccess::from_environment();
  if (mlflow.experiment.empty())
    throw std::invalid_argument("tune: .mlflow.experiment is empty; name one");
  constexpr std::chrono::hours most{24};
  if (mlflow.deadline.count() < 0 || mlflow.deadline > most || mlflow.most_waiting == 0) {
    throw std::invalid_argument(
        fmt::format("tune: .mlflow.deadline is {} ms, 0 to 24 hours, and .most_waiting {}, at "
                    "least 1",
                    mlflow.deadline.count(), mlflow.most_waiting));
  }
  if (mlflow.patience.count() < 0 || mlflow.patience > most) {
    throw std::invalid_argument(
        fmt::format("tune: .mlflow.patience is {} ms, 0 to 24 hours", mlflow.patience.count()));
  }
}

namespace {

/// Appends what a searcher or a scheduler (`role`) has saved before its first trial: its name as
/// `prefix`, and each option that is one value below it. One that only passes on what is given or
/// computed is passed over for the one that it stands before.
void add_algorithm(Texts& params, const std::string& prefix, const char* role, const Json& saved) {
  if (!saved.is_object() || !saved.contains(role) || !saved.at(role).is_string()) return;
  const auto name = saved.at(role).get<std::string>();
  if ((name == "given" || name == "completed") && saved.contains("search"))  // not a user's own
    return add_algorithm(params, prefix, role, saved.at("search"));
  params.emplace_back(prefix, name);
  // Stand by themselves, or count what has happened.
  const std::set<std::string> no_options{role,
                                         "metric",
                                         "mode",
                                         "seed",
                                         "trials",
                                         "given",
                                         "begun",
                                         "restarts",
                                         "has_drawn",
                                         "sync_t",
                                         "draws",
                                         "has_trained",
                                         "told_checkpoint_is_missing",
                                         "told_of_checkpoints"};
  for (const auto& [key, value] : saved.items()) {
    if (no_options.contains(key) || value.is_null()) continue;
    const auto own = prefix + "/" + key;
    if (key == "search") add_algorithm(params, own, role, value);
    if (name == "asha" && key == "brackets") params.emplace_back(own, std::to_string(value.size()));
    if (value.is_primitive())
      params.emplace_back(own, value.is_string() ? value.get<std::string>() : dump(value));
  }
}

/// What an MLflow run of the whole search says of it. `header`: the first line of its journal.
Texts params_of(const detail::Plan& plan, const std::string& header) {
  Texts params{{"metric", plan.objective.metric},
               {"mode", plan.objective.mode == Mode::Max ? "max" : "min"},
               {"seed", std::to_string(plan.seed)}};
  for (const auto& [name, domain] : plan.space)
    params.emplace_back("space/" + name, to_string(domain));
  const auto saved = parse(header, "a journal's first line");
  for (const auto* role : {"searcher", "scheduler"})
    add_algorithm(params, role, role, saved.value(role, Json()));
  return params;
}

}  // namespace

Trackers::Trackers(const detail::Plan& plan, const std::string& header)
    : plan_{plan}, header_{header} {
  detail::check(plan.mlflow);
  if (!plan.mlflow.url.empty()) libcurl();  // which may be missing: said before anything is made
  if (plan.tensorboard && plan.storage.empty() && plan.resume_folder.empty()) {
    throw std::invalid_argument(
        "tune: .tensorboard writes into the run's folder, and without .storage there is none; "
        "name a folder");
  }
}

void Trackers::open(const std::filesystem::path& folder) {
  const auto& mlflow = plan_.mlflow;
  if (!plan_.tensorboard && mlflow.url.empty()) return;
  clock_.emplace(folder);
  const auto path = folder.parent_path().filename() / folder.filename();
  const auto title = folder.empty() ? std::string("search") : path.string();
  if (plan_.tensorboard) {
    trackers_.push_back(
        std::make_unique<EventFiles>(EventFiles::Run{.folder = folder / "tensorboard",
                                                     .title = title,
                                                     .driver = clock_->drivers() + 1,
                                                     .began = std::chrono::system_clock::now()},
                                     plan_.space, plan_.objective));
  }
  if (!mlflow.url.empty()) {
    trackers_.push_back(std::make_unique<MlflowTracker>(
        mlflow, MlflowTracker::Run{.folder = folder,
                                   .name = mlflow.run_name.empty() ? title : mlflow.run_name,
                                   .params = params_of(plan_, header_),
                                   .objective = plan_.objective,
                                   .sweep_file = plan_.sweep_file,
                                   .storage = plan_.storage}));
  }
}

void Trackers::leave_folder() {
  std::erase_if(trackers_, [](const auto& tracker) {
    return dynamic_cast<const EventFiles*>(tracker.get()) != nullptr;
  });
}

void Trackers::start(Seconds now) {
  if (is_started_ || !clock_) return;
  clock_->start(now, std::chrono::system_clock::now());
  is_started_ = true;
}

void Trackers::see_before_snapshot(const std::filesystem::path& folder, std::uintmax_t bytes,
                                   const std::vector<Trial>& trials) {
  if (trackers_.empty()) return;
  tell_earlier_reports(folder, bytes, trials, [&](const Event& event, const Trial& trial) {
    for (const auto& tracker : trackers_) tracker->see(event, trial, clock_->at(event.now));
  });
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

void Trackers::conclude(const Experiment& experiment, Seconds now, const Note& note,
                        const Tracker::Say& say) {
  start(now);
  for (const auto& tracker : trackers_) {
    for (const auto& notice : tracker->conclude(experiment, clock_->at(now), say)) note(notice);
  }
}

}  // namespace troupe::tune
