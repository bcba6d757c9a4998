#include "run/earlier/resume_words.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "output/folder/run_folder.hpp"
#include "output/overview.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {

std::string not_gone_on_with(const std::filesystem::path& earlier,
                             const std::filesystem::path& folder, bool counts_trials) {
  return fmt::format(
      "{} has come to its end, and .resume has nothing to go on with: this is a new run, in {}. "
      "{}; "
      "tune::resume(its folder, options) returns the earlier one's results",
      earlier.string(), folder.filename().string(),
      counts_trials
          ? "It learns what the earlier one found from .known = "
            "tune::load<Config>(its folder).known(); the earlier one can be given no more "
            "trials with this .scheduler"
          : "To add trials to the earlier one, give the options that it was begun with "
            "and more .trials");
}

void refuse_more_trials(const Experiment& experiment, std::string_view journal,
                        const std::string& header) {
  if (!experiment.scheduler().needs().counts_trials) return;
  throw std::invalid_argument(
      fmt::format("it was begun with .trials = {}, here they are {}, and its .scheduler decides by "
                  "how many trials are to come, so that none can be added",
                  trials_of(journal), trials_of(header)));
}

std::string instead_of_going_on(const Plan& plan, bool has_same_objectives) {
  if (!plan.sweep_file.empty()) {
    return fmt::format(
        "let {0} say what it said when that run began, or begin a new run: `troupe tune run {0}`",
        plan.sweep_file);
  }
  return fmt::format(
      "give the options that it ran with last, or begin a new run without .resume{}. Where several "
      "searches have one .storage, .resume takes the last run of all: give each its own",
      has_same_objectives ? ", which learns what this one found from .known = "
                            "tune::load<Config>(its folder).known()"
                          : "");
}

std::string how_it_is_resumed(const Experiment& experiment, const std::filesystem::path& folder,
                              Seconds now) {
  if (is_over(experiment, overview_of(experiment, now, 0))) {
    return fmt::format("{} had come to its end: nothing is left to run, and these are its results",
                       folder.string());
  }
  return fmt::format("goes on with {}: {} begun, {} under way when it ended", folder.string(),
                     counted(experiment.trials().size(), "trial"), experiment.in_flight());
}

void refuse_damaged(const std::filesystem::path& folder, const DamagedLine& damaged) {
  const auto journal = (folder / kJournalFile).string();
  throw std::runtime_error(fmt::format(
      "tune: cannot go on with {}: line {} of its journal is damaged: {}. Nothing in it was "
      "changed; {}",
      folder.string(), damaged.number(), damaged.text(),
      damaged.number() == 1
          ? "put the journal back from a copy, or begin a new run"
          : fmt::format("to go on from the events before it, keep a copy of {} and cut it there: "
                        "`head -n {} COPY > {}`",
                        journal, damaged.number() - 1, journal)));
}

void refuse_other_version(const std::filesystem::path& folder, const OtherVersion& other,
                          const Plan& plan) {
  throw std::runtime_error(fmt::format(
      "tune: cannot go on with {}: {}. Nothing in it was changed; go on with it with the Troupe "
      "that "
      "began it, or begin a new run{}",
      folder.string(), other.what(),
      plan.sweep_file.empty() ? " without .resume"
                              : fmt::format(": `troupe tune run {}`", plan.sweep_file)));
}

}  // namespace troupe::tune::detail
