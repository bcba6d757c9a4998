#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <troupe/tune/searcher.hpp>

#include "arguments.hpp"
#include "core/harness.hpp"
#include "importance/importance.hpp"

/// How near the importance of fields comes to what is known of three functions, from 200 trials that
/// are drawn at random and are always the same.
///
///   importance_bench [--json] [--smoke] [--seed N] [--trials]
namespace {

namespace tune = troupe::tune;
using namespace troupe::bench;
using nlohmann::json;

double number_of(const tune::Configuration& config, std::size_t field) {
  return std::get<double>(config[field].second.value());
}

/// Ishigami and Homma, 1990, with a = 7 and b = 0.1.
double ishigami(const tune::Configuration& x) {
  const double first = std::sin(number_of(x, 0)), second = std::sin(number_of(x, 1));
  return first + 7 * second * second + 0.1 * std::pow(number_of(x, 2), 4) * first;
}

double linear(const tune::Configuration& x) {
  return 4 * number_of(x, 0) + 2 * number_of(x, 1) + number_of(x, 2);
}

/// As training may depend on a rate of learning, on a kind of optimizer, and hardly on a third.
double training(const tune::Configuration& x) {
  const double from_best = std::log10(number_of(x, 0)) + 2.5;
  const double of_kind = x[1].second == tune::Scalar("adam")  ? 0
                         : x[1].second == tune::Scalar("sgd") ? 0.5
                                                              : 1.5;
  return from_best * from_best + of_kind + 0.5 * number_of(x, 2);
}

struct Function {
  std::string name;
  tune::SearchSpace space;
  double (*value)(const tune::Configuration&);
  std::vector<double> known;  ///< the part of the variance that each field alone explains
};

std::vector<Function> functions() {
  constexpr double pi = std::numbers::pi, b = 0.1, a = 7;
  const double of_first = std::pow(1 + b * std::pow(pi, 4) / 5, 2) / 2;
  const double of_second = a * a / 8;
  const double together = b * b * std::pow(pi, 8) * (1.0 / 18 - 1.0 / 50);
  const double ishigami_variance = of_first + of_second + together;
  // Of a square between -1.5 and 1.5; of 0, 0.5 and 1.5; of a half of [0, 1].
  const double of_rate = std::pow(1.5, 4) * 4 / 45, of_kind = 7.0 / 18, of_momentum = 0.25 / 12;
  const double training_variance = of_rate + of_kind + of_momentum;
  const auto angle = tune::uniform(-pi, pi), unit = tune::uniform(0, 1);
  return {{"ishigami",
           {{"x1", angle}, {"x2", angle}, {"x3", angle}},
           ishigami,
           {of_first / ishigami_variance, of_second / ishigami_variance, 0}},
          {"linear",
           {{"x1", unit}, {"x2", unit}, {"x3", unit}},
           linear,
           {16.0 / 21, 4.0 / 21, 1.0 / 21}},
          {"training",
           {{"lr", tune::loguniform(1e-4, 1e-1)},
            {"kind", tune::choice({"adam", "sgd", "rmsprop"})},
            {"momentum", unit}},
           training,
           {of_rate / training_variance, of_kind / training_variance,
            of_momentum / training_variance}}};
}

std::vector<tune::Trial> trials_of(const Function& function, std::uint64_t seed,
                                   std::uint64_t count) {
  tune::RandomSearcher random(function.space, seed, count);
  std::vector<tune::Trial> trials;
  for (tune::TrialId id = 0; id < count; ++id) {
    auto config = std::get<tune::Configuration>(random.suggest(id));
    const double best = function.value(config);
    trials.push_back(
        {.id = id, .config = std::move(config), .status = tune::Status::Terminated, .best = best});
  }
  return trials;
}

json value_json(const tune::Scalar& scalar) {
  return std::visit([](const auto& value) { return json(value); }, scalar.value());
}

/// What a peer needs to judge the same trials.
void print_trials(const Function& function, const std::vector<tune::Trial>& trials) {
  json line{{"function", function.name}, {"fields", json::array()}, {"trials", json::array()}};
  for (const auto& [name, domain] : function.space) {
    json field{{"name", name}};
    if (const auto range = domain.range()) {
      field["low"] = range->low;
      field["high"] = range->high;
      field["log"] = range->is_log;
    } else {
      for (const auto& value : domain.values()) field["values"].push_back(value_json(value));
    }
    line["fields"].push_back(std::move(field));
  }
  for (const auto& trial : trials) {
    json config = json::object();
    for (const auto& [name, value] : trial.config) config[name] = value_json(value);
    line["trials"].push_back({std::move(config), *trial.best});
  }
  std::cout << line.dump() << '\n';
}

void measure(const Report& report, const Function& function,
             const std::vector<tune::Trial>& trials) {
  const auto start = Clock::now();
  const auto found = tune::importance(function.space, {"loss", tune::Min}, trials);
  const auto took = seconds_since(start);
  for (std::size_t i = 0; i < function.space.size(); ++i) {
    const auto& field = function.space[i].name;
    const auto at = std::ranges::find(found.fields, field, &tune::FieldImportance::name);
    if (at == found.fields.end()) continue;
    const auto name = fmt::format("{}/{}/", function.name, field);
    report.print(name + "known", function.known[i], "part");
    if (at->fanova) report.print(name + "fanova", *at->fanova, "part");
    if (at->ped_anova) report.print(name + "ped_anova", *at->ped_anova, "part");
  }
  report.print(function.name + "/took", 1e3 * took, "ms", fmt::format("{} trials", found.trials));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool shows_trials = false;
  Arguments arguments("How near the importance of fields comes to what is known of functions.");
  arguments.flag("--json", options.json, "a JSON line for each figure");
  arguments.flag("--smoke", options.smoke, "few trials: shows that it runs, not how well");
  arguments.option("--seed", options.seed, "of the trials");
  arguments.flag("--trials", shows_trials,
                 "print the trials instead, a JSON line for each function");
  arguments.parse(argc, argv);
  const Report report(options);
  for (const auto& function : functions()) {
    const auto trials = trials_of(function, options.seed, options.smoke ? 20 : 200);
    if (shows_trials)
      print_trials(function, trials);
    else
      measure(report, function, trials);
  }
}
