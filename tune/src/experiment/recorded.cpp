#include "experiment/recorded.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "text/names.hpp"

namespace troupe::tune {
namespace {

/// Shared by the searcher and the scheduler: the event that is applied next.
using Coming = std::shared_ptr<Event>;

/// Suggests what the journal launched.
class RecordedSearcher final : public Searcher {
 public:
  RecordedSearcher(Coming coming, std::shared_ptr<std::uint64_t> trials)
      : coming_{std::move(coming)}, trials_{std::move(trials)} {}

  Suggestion suggest(TrialId) override { return coming_->config; }
  std::optional<std::uint64_t> size() const override {
    return *trials_ > 0 ? std::optional(*trials_) : std::nullopt;
  }
  std::string save() const override { return dump(Json{{"trials", *trials_}}); }
  void load(std::string_view) override {}

 private:
  Coming coming_;
  std::shared_ptr<std::uint64_t> trials_;  // 0: nobody knows
};

/// Decides what the journal says was decided.
class RecordedScheduler final : public TrialScheduler {
 public:
  RecordedScheduler(Coming coming, std::vector<RungSummary> rungs)
      : coming_{std::move(coming)}, rungs_{std::move(rungs)} {}

  Decision on_report(const Trial&, const Population&) override { return coming_->decision; }
  void on_end(TrialId, const Population&) override {}
  Turn on_place(const Population& population) override {
    const auto& launched = *coming_;
    if (launched.trial >= population.trials.size()) return Begin{};
    Resume resume{.trial = launched.trial,
                  .workers = launched.workers,
                  .why = why_of(launched.decision),
                  .rung = rung_of(launched.decision)};
    if (const auto* exploit = std::get_if<Exploit>(&launched.decision)) resume.exploit = *exploit;
    return resume;
  }
  std::string why_left(TrialId) const override {
    return coming_->kind == Event::Kind::Dropped ? coming_->text : std::string();
  }
  std::optional<Exploit> on_checkpoint_gone(const Trial&, const std::string&,
                                            const Population&) override {
    const auto* exploit = std::get_if<Exploit>(&coming_->decision);
    return exploit ? std::optional(*exploit) : std::nullopt;
  }
  std::vector<RungSummary> rungs() const override { return rungs_; }
  std::string save() const override { return "{}"; }
  void load(std::string_view) override {}

 private:
  Coming coming_;
  std::vector<RungSummary> rungs_;
};

Objective objective_from(const Json& json) {
  return {name_from_utf8(json.at("metric").get<std::string>()),
          json.at("mode") == "max" ? Mode::Max : Mode::Min};
}

Constraint constraint_from(const Json& json) {
  return {name_from_utf8(json.at("metric").get<std::string>()),
          json.at("bound") == "at most" ? Bound::AtMost : Bound::AtLeast,
          json.at("limit").get<double>()};
}

/// As journal_header() writes it.
StopWhen stop_from(const Json& json) {
  StopWhen stop;
  stop.reports = json.value("reports", std::int64_t{0});
  if (const auto goal = json.value("reaches", Json()); !goal.is_null())
    stop.reaches = number_from(goal);
  if (json.contains("plateau")) {
    stop.plateau.reports = json.at("plateau").at("reports").get<std::int64_t>();
    stop.plateau.delta = number_from(json.at("plateau").at("delta"));
  }
  stop.trial_time = std::chrono::milliseconds(json.value("trial_time_ms", std::int64_t{0}));
  stop.all_reports = json.value("all_reports", std::int64_t{0});
  stop.no_better_trials = json.value("no_better_trials", std::size_t{0});
  if (json.contains("cost")) {
    stop.cost_metric = name_from_utf8(json.at("cost").at("of").get<std::string>());
    stop.cost = number_from(json.at("cost").at("most"));
  }
  return stop;
}

ExperimentOptions options_from(const Json& header) {
  ExperimentOptions options{.objective = objective_from(header),
                            .seed = header.at("seed").get<std::uint64_t>(),
                            .max_failures = header.at("max_failures").get<int>(),
                            .system_retries = header.at("system_retries").get<int>(),
                            .stop = stop_from(header.at("stop"))};
  for (const auto& each : header.value("objectives", Json::array()))
    options.objectives.push_back(objective_from(each));
  for (const auto& each : header.value("constraints", Json::array()))
    options.constraints.push_back(constraint_from(each));
  return options;
}

/// The numbers of "uniform(0, 1, 0.25)"; none: the text is of another form, or has others.
template <class Number>
std::vector<Number> numbers_in(const std::string& text) {
  std::vector<Number> numbers;
  const auto begin = text.find('(');
  if (begin == std::string::npos || !text.ends_with(')')) return {};
  const char* at = text.data() + begin + 1;
  const char* const close = text.data() + text.size() - 1;
  while (true) {
    const auto read = std::from_chars(at, close, numbers.emplace_back());
    if (read.ec != std::errc()) return {};
    if (read.ptr == close) return numbers;
    constexpr std::string_view kBetween = ", ";
    if (!std::string_view(read.ptr, close).starts_with(kBetween)) return {};
    at = read.ptr + kBetween.size();
  }
}

std::optional<Domain> integers_from(const std::string& kind, const std::string& text) {
  const auto numbers = numbers_in<std::int64_t>(text);
  const auto count = numbers.size();
  if (kind == "log_integer" && count == 2) return log_integer(numbers[0], numbers[1]);
  if (kind != "integer" || count < 2 || count > 3) return std::nullopt;
  return count == 3 ? integer(numbers[0], numbers[1], numbers[2]) : integer(numbers[0], numbers[1]);
}

/// None: it is no range.
std::optional<Domain> range_from(const std::string& text) {
  const auto kind = text.substr(0, text.find('('));
  if (kind == "integer" || kind == "log_integer") return integers_from(kind, text);
  const auto numbers = numbers_in<double>(text);
  if (numbers.size() < 2 || numbers.size() > 3) return std::nullopt;
  const bool has_step = numbers.size() == 3;
  const auto low = numbers[0], high = numbers[1], step = has_step ? numbers[2] : 0;
  if (kind == "uniform") return has_step ? uniform(low, high, step) : uniform(low, high);
  if (kind == "loguniform") return has_step ? loguniform(low, high, step) : loguniform(low, high);
  if (kind == "normal") return has_step ? normal(low, high, step) : normal(low, high);
  return std::nullopt;
}

/// Each once, in the order of the trials.
std::vector<Scalar> values_had(const std::string& field, const std::vector<Trial>& trials) {
  std::vector<Scalar> values;
  for (const auto& trial : trials) {
    for (const auto& [name, value] : trial.config) {
      if (name == field && std::ranges::find(values, value) == values.end())
        values.push_back(value);
    }
  }
  return values;
}

}  // namespace

RecordedExperiment recorded_experiment(std::string_view journal, bool of_programs,
                                       std::vector<RungSummary> rungs) {
  auto options = options_from(first_line_of(journal));
  options.of_programs = of_programs;
  const auto coming = std::make_shared<Event>();
  const auto trials = std::make_shared<std::uint64_t>(trials_of(journal));
  auto experiment = std::make_unique<Experiment>(
      std::move(options), std::make_unique<RecordedSearcher>(coming, trials),
      std::make_unique<RecordedScheduler>(coming, std::move(rungs)));
  return {.experiment = std::move(experiment),
          .coming = [coming](const Event& event) { *coming = event; },
          .trials = trials};
}

SearchSpace recorded_space(const Json& space, const std::vector<Trial>& trials) {
  SearchSpace fields;
  for (const auto& [name, domain] : space.items()) {
    if (!domain.is_string()) continue;
    if (auto range = range_from(domain.get<std::string>())) {
      fields.push_back({name, std::move(*range)});
    } else if (auto values = values_had(name, trials); !values.empty()) {
      fields.push_back({name, choice(std::move(values))});
    }
  }
  return fields;
}

}  // namespace troupe::tune
