#include <troupe/tune/detail/look.hpp>

#include <functional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include <troupe/tune/detail/checks.hpp>
#include <troupe/tune/load.hpp>

#include "experiment/journal.hpp"
#include "experiment/recorded.hpp"
#include "output/folder/earlier_run.hpp"
#include "output/folder/params.hpp"
#include "output/folder/run_folder.hpp"
#include "output/html/html_report.hpp"
#include "output/render.hpp"
#include "run/earlier/resume_words.hpp"
#include "run/earlier/snapshot.hpp"
#include "run/prepare.hpp"
#include "run/sweep_words.hpp"
#include "text/json.hpp"

namespace troupe::tune::detail {
namespace {

constexpr std::size_t kWidth = 160;
constexpr std::size_t kMostRowsOfLoaded = 0;  // its table is not shown

std::filesystem::path folder_of(const Plan& plan, const std::filesystem::path& folder) {
  if (!folder.empty()) return spelled(folder);
  const auto storage = spelled(plan.storage);
  const auto last = last_run(storage, plan.sweep_file).folder;
  if (last.empty())
    throw std::runtime_error(fmt::format("there is no run in {} yet", storage.string()));
  return last;
}

/// The run's events, of which a snapshot may have the first ones.
class Replayed {
 public:
  Replayed(Experiment& experiment, const std::filesystem::path& folder, const EarlierRun& earlier,
           const std::function<void(const Event&)>& coming = {})
      : experiment_(experiment) {
    Snapshot known;
    if (!earlier.snapshot.empty()) known = snapshot_in(folder, earlier.snapshot);
    if (!known.experiment.empty()) {
      experiment.load(known.experiment);
      record_.load(known.record);
      now_ = known.now;
    }
    apply_events(
        earlier.journal, experiment,
        [this](const Event& event, const Trial* trial) {
          record_.see(event, trial);
          now_ = event.now;
        },
        known.events, coming);
  }

  bool is_over() const { return tune::is_over(experiment_, overview_of(experiment_, now_, 0)); }

  /// `holder`: who runs it; empty: nobody. `resume_command`: of `troupe tune`; empty: none.
  RunLook look(const SearchSpace& space, const std::filesystem::path& folder,
               const std::string& holder, const std::string& resume_command, std::size_t most_rows,
               WithReport with_report = WithReport::Yes) const {
    // One that runs writes it at its end.
    const auto damage = holder.empty() ? damage_of_summary(folder) : std::string();
    const auto title = folder.parent_path().filename() / folder.filename();
    const CheckpointNames names(folder);
    const auto overview_with = [&](std::size_t rows) {
      auto overview = overview_of(experiment_, now_, rows);
      overview.folder = folder.string();
      overview.how_to_go_on = resume_command;
      overview.is_abandoned = holder.empty();
      if (!damage.empty())
        overview.notices.push_back(damage + ". What is shown is what the journal says");
      overview.best_checkpoint = names.path_of(overview.best_checkpoint);
      return overview;
    };
    const auto overview = overview_with(most_rows);
    RunLook seen{.outcome = outcome_of(experiment_, now_, names),
                 .is_over = tune::is_over(experiment_, overview),
                 .holder = holder,
                 .resume_command = resume_command,
                 .table = render_table(overview, {.width = kWidth}),
                 .summary = summary_text(experiment_, now_, overview.is_abandoned),
                 .report = {}};
    if (with_report == WithReport::Yes) {
      const auto state = holder.empty() ? RunState::Abandoned
                         : seen.is_over ? RunState::Over
                                        : RunState::UnderWay;
      seen.report = html_report(experiment_, space, record_, title.string(), now_,
                                {.run = state, .written = std::chrono::system_clock::now()},
                                curves_of_reports(folder, experiment_));
    }
    seen.outcome.summary = render_summary(overview_with(0), {});
    seen.outcome.folder = folder;
    return seen;
  }

 private:
  Experiment& experiment_;
  RunRecord record_;
  Seconds now_{0};
};

[[noreturn]] void raise_damaged(const std::filesystem::path& folder, const DamagedLine& damaged) {
  throw std::runtime_error(fmt::format("{}: line {} of its journal is damaged: {}", folder.string(),
                                       damaged.number(), damaged.text()));
}

[[noreturn]] void raise_not_shown(const std::filesystem::path& folder, const char* why) {
  throw std::runtime_error(fmt::format("{} cannot be shown: {}", folder.string(), why));
}

void require_same_search(const Experiment& experiment, const EarlierRun& earlier) {
  const auto header = journal_header(experiment);
  if (!has_more_trials(earlier.journal, header)) check_header(earlier.journal, header);
}

/// Returns what `see` does with the run in `folder`, once its events are applied.
template <class See>
auto see_run(const Plan& plan, const std::filesystem::path& folder, See see) {
  const auto prepared = prepare(plan, true);
  try {
    const auto earlier = read_earlier(folder);
    require_same_search(*prepared.experiment, earlier);
    return see(Replayed(*prepared.experiment, folder, earlier), prepared.plan);
  } catch (const DamagedLine& damaged) {
    raise_damaged(folder, damaged);
  } catch (const OtherVersion& other) {
    raise_not_shown(folder, other.what());
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(
        fmt::format("{} is a run of another search: {}", folder.string(), refused.what()));
  } catch (const Json::exception& broken) {
    throw std::runtime_error(
        fmt::format("{} has a snapshot that cannot be read: {}", folder.string(), broken.what()));
  }
}

}  // namespace

RunLook look_at_run(const Plan& plan, const std::filesystem::path& folder, std::size_t most_rows,
                    WithReport with_report) {
  return with_words_of(plan, [&] {
    const auto found = folder_of(plan, folder);
    // Asked before: what a driver writes until its end is read then.
    const auto holder = holder_of(found);
    return see_run(plan, found, [&](const Replayed& run, const Plan& prepared) {
      return run.look(prepared.space, found, holder,
                      resume_command(prepared.sweep_file, prepared.storage, found), most_rows,
                      with_report);
    });
  });
}

namespace {

std::vector<RungSummary> rungs_in(const Json& summary) {
  std::vector<RungSummary> rungs;
  for (const auto& each : summary.value("rungs", Json::array())) {
    RungSummary rung{.bracket = each.at("bracket").get<int>(),
                     .rung = each.at("rung").get<int>(),
                     .t = each.at("t").get<std::int64_t>(),
                     .reached = each.at("judged").get<std::size_t>(),
                     .stopped = each.at("stopped").get<std::size_t>(),
                     .not_finite = each.at("not_finite").get<std::size_t>()};
    if (!each.at("cutoff").is_null()) rung.cutoff = number_from(each.at("cutoff"));
    rungs.push_back(rung);
  }
  return rungs;
}

/// Whether the run ended with these trials. A search that makes fewer than it may (points that come to
/// the same, a condition) says so in its summary alone; one that was taken up again has begun more.
bool has_ended_with(const Json& summary, const std::vector<Trial>& trials) {
  return summary.contains("ended_early") && summary.at("ended_early").is_null() &&
         summary.at("trials").size() == trials.size();
}

RunLook look_at_recorded(const std::filesystem::path& folder, const std::string& holder,
                         std::size_t most_rows, WithReport with_report) {
  const bool is_sweep = std::filesystem::exists(folder / kProgramFile);
  auto summary = json_in(folder / "summary.json");
  const bool is_usable = holder.empty() && summary.is_object() && damage_of_summary(folder).empty();
  if (!is_usable) summary = Json::object();
  const auto params = RunParams::in(folder);
  const auto earlier = read_earlier(folder);
  refuse_without_journal(folder);
  if (earlier.journal.find('\n') == std::string::npos)
    throw std::invalid_argument("its journal is empty: it has not begun");
  const auto recorded = recorded_experiment(earlier.journal, is_sweep, rungs_in(summary));
  const Replayed run(*recorded.experiment, folder, earlier, recorded.coming);
  const auto& trials = recorded.experiment->trials();
  if (has_ended_with(summary, trials)) *recorded.trials = trials.size();
  auto seen =
      run.look(recorded_space(params.space(), trials), folder, holder,
               is_sweep ? fmt::format("troupe tune resume FILE --run {}", folder.string()) : "",
               most_rows, with_report);
  seen.outcome.unsearched = params.unsearched();
  seen.outcome.earlier = params.earlier_configs();
  return seen;
}

}  // namespace

RunLook look_at_folder(const std::filesystem::path& given, std::size_t most_rows,
                       WithReport with_report) {
  const auto folder = run_in(spelled(given));
  const auto holder = holder_of(folder);
  try {
    return look_at_recorded(folder, holder, most_rows, with_report);
  } catch (const DamagedLine& damaged) {
    raise_damaged(folder, damaged);
  } catch (const std::invalid_argument& refused) {
    raise_not_shown(folder, refused.what());
  } catch (const Json::exception& broken) {
    throw std::runtime_error(
        fmt::format("{} has a file that cannot be read: {}", folder.string(), broken.what()));
  }
}

bool is_abandoned(const Plan& plan, const std::filesystem::path& folder) {
  if (!holder_of(folder).empty()) return false;
  return with_words_of(plan, [&] {
    return see_run(plan, folder, [](const Replayed& run, const Plan&) { return !run.is_over(); });
  });
}

Outcome loaded(const std::filesystem::path& folder) {
  return look_at_folder(folder, kMostRowsOfLoaded, WithReport::No).outcome;
}

void refuse_loaded(const std::filesystem::path& folder, const std::string& why) {
  throw std::invalid_argument(fmt::format(
      "tune: {} can not be loaded with this type of configuration: {}; name the type that the run "
      "searched, or one with its fields",
      folder.string(), why.substr(0, why.find("; "))));  // without what to write in a space
}

}  // namespace troupe::tune::detail
