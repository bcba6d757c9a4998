#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/simulate.hpp>

/// Tables of real learning curves (TaskSet: 1000 configurations, 50 steps), and searches over them.
namespace troupe::tune::taskset {

namespace tune = troupe::tune;

constexpr std::int64_t kSteps = 50;
/// Of a configuration, its loss after 1 .. kSteps steps.
using Curves = std::vector<std::vector<double>>;

inline Curves parsed(std::istream& csv) {
  Curves curves;
  std::string line, field;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    std::vector<double> losses;
    std::istringstream fields(line);
    constexpr int before_the_losses = 9;  // eight hyperparameters, and the loss before training
    for (int index = 0; std::getline(fields, field, ','); ++index) {
      if (index >= before_the_losses) losses.push_back(std::stod(field));
    }
    if (losses.size() != kSteps) throw std::runtime_error("a curve has not 50 steps");
    curves.push_back(std::move(losses));
  }
  return curves;
}

/// Empty if the data set is not there. `folder` has <task>.csv.gz.
inline Curves curves_of(const std::filesystem::path& folder, const std::string& task) {
  const auto path = folder / (task + ".csv.gz");
  if (!std::filesystem::exists(path)) return {};
  std::string text;
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run gzip");
  std::array<char, 65536> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), size);
  if (pclose(pipe) != 0) throw std::runtime_error(path.string() + " cannot be read");
  std::istringstream csv(text);
  return parsed(csv);
}

inline double lowest(const std::vector<double>& losses) {
  double best = std::numeric_limits<double>::infinity();
  for (double loss : losses) best = loss < best ? loss : best;  // false for nan
  return best;
}

/// Hands out the configurations of the table in a random order, each once.
class TableSearcher final : public Searcher {
 public:
  TableSearcher(std::size_t size, std::uint64_t seed) : order_(size) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    Random random(seed);
    for (auto left = size; left > 1; --left)
      std::swap(order_[left - 1], order_[random.below(left)]);
  }
  Suggestion suggest(TrialId trial) override {
    if (trial >= order_.size()) return NoMore{};
    return Configuration{{"row", order_[trial]}};
  }
  std::string save() const override { return "{}"; }
  void load(std::string_view) override {}

 private:
  std::vector<std::int64_t> order_;
};

struct Row {
  std::int64_t row = 0;
};

/// The search for the best of these curves in virtual time. -> how far the best found is from the
/// best there is, at each improvement, with the steps' time.
struct Search {
  double best = 0;  // of all curves
  tune::Preview<Row> preview;
  double regret() const { return preview.results.best().value() - best; }
};

inline double lowest_of_all(const Curves& curves) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& losses : curves) best = std::min(best, lowest(losses));
  return best;
}

inline Search search(const Curves& curves, double best, const SchedulerFactory& scheduler,
                     std::uint64_t seed, std::size_t workers, std::chrono::seconds time) {
  const tune::Options<Row> options{.space = {{"row", integer(0, 999)}},
                                   .trials = curves.size(),
                                   .metric = "loss",
                                   .mode = Min,
                                   .scheduler = scheduler,
                                   .seed = seed,
                                   .searcher =
                                       [&](const SearchSetup& setup) {
                                         return std::make_unique<TableSearcher>(curves.size(),
                                                                                setup.seed);
                                       },
                                   .time_budget = time + std::chrono::milliseconds(500)};
  return {best, simulate<Row>(options, {.curve =
                                            [&](const Row& row, std::int64_t t) {
                                              return curves[static_cast<std::size_t>(row.row)]
                                                           [static_cast<std::size_t>(t - 1)];
                                            },
                                        .reports = kSteps,
                                        .gangs = workers})};
}

/// Seconds until the best found is at most `goal` above the best there is; none: it never is.
inline std::optional<double> time_to(double goal, const Search& search) {
  for (const auto& step : search.preview.improvements) {
    if (step.value - search.best <= goal) return step.now.count();
  }
  return std::nullopt;
}

struct Mean {
  double value = 0;
  double error = 0;  // standard
};

inline Mean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return {sum / n, std::sqrt(squares / (n - 1) / n)};
}

/// A row of the regrets of another simulation of the same rules (reference.csv).
struct Reference {
  std::string task, algorithm;  // "random", "stop" or "prom"
  std::size_t workers = 0;
  int time = 0, eta = 0;
  double mean = 0;
};

inline std::vector<Reference> references(const std::filesystem::path& file) {
  std::vector<Reference> all;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::ranges::replace(line, ',', ' ');
    Reference row;
    std::istringstream(line) >> row.task >> row.workers >> row.time >> row.algorithm >> row.eta >>
        row.mean;
    all.push_back(std::move(row));
  }
  return all;
}

inline SchedulerFactory scheduler_of(const std::string& algorithm, int eta) {
  if (algorithm == "random") return fifo();
  return asha({.max_t = kSteps, .eta = eta, .promote = algorithm == "prom"});
}

/// Whether a mean over as many seeds as the reference's is at or below it, within twice the error of
/// the difference; the reference's own error is taken for as large.
inline bool is_met(const Mean& mean, const Reference& row) {
  return mean.value <= row.mean + 2 * std::sqrt(2.0) * mean.error;
}

}  // namespace troupe::tune::taskset
