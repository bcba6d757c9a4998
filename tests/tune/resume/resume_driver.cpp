// A driver for the tests of runs that are taken up again: resume_driver STORAGE SCHEDULER KILL_AT
// [--address HOST:PORT]. Kills itself before its KILL_AT-th report, where that is not 0. Without
// an address the trials run in this process, one at a time. Each trial waits before its third report
// while there is a file STORAGE/hold. Goes on with the last run in STORAGE, or with the one
// that RESUME_FOLDER names.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <string>

#include <unistd.h>
#include <troupe/tune.hpp>

#include <troupe/cluster.hpp>

namespace tune = troupe::tune;

namespace {

int reports_left = 0;

struct Config {
  double lr = 0.5;
  std::string hold = {};
};

/// Sums up the learning rates; the sum is the checkpoint.
void sums(tune::Context& ctx, const Config& config) {
  int step = 0;
  double sum = 0;
  if (!ctx.restore_from().empty()) std::ifstream(ctx.restore_from()) >> step >> sum;
  while (true) {
    while (step >= 2 && std::filesystem::exists(config.hold)) usleep(2'000);
    if (reports_left > 0 && --reports_left == 0) ::raise(SIGKILL);
    ++step;
    sum += config.lr;
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(step));
    std::filesystem::create_directories(ctx.storage());
    std::ofstream file(checkpoint);
    file.precision(std::numeric_limits<double>::max_digits10);
    file << step << ' ' << sum;
    file.close();
    if (ctx.report({{"sum", sum}, {"step", step}}, checkpoint) == troupe::Verdict::Stop) return;
  }
}

/// Goes from the best learning rate half-way to a drawn one.
class Halfway final : public tune::OwnSearch {
 public:
  explicit Halfway(const tune::SearchSetup& setup) : setup_{setup} {}
  tune::Suggestion ask(tune::Random& random) override {
    const auto& [name, domain] = setup_.space.front();
    const auto drawn = domain.sample(random);
    if (!best_) return tune::Configuration{{name, drawn}};
    const auto x = std::get<double>(drawn.value());
    return tune::Configuration{{name, tune::Scalar((x + best_lr_) / 2)}};
  }
  void tell(const tune::Configuration& configuration, const tune::TrialEnd& end) override {
    if (!end.best || (best_ && !setup_.objective.better(*end.best, *best_))) return;
    best_ = end.best;
    best_lr_ = std::get<double>(configuration.front().second.value());
  }

 private:
  tune::SearchSetup setup_;
  std::optional<double> best_;
  double best_lr_ = 0;
};

tune::SchedulerFactory scheduler_of(const std::string& name) {
  if (name == "asha" || name == "tpe") return tune::asha({.max_t = 9, .eta = 3});
  if (name == "promotion" || name == "own")
    return tune::asha({.max_t = 9, .eta = 3, .promote = true});
  if (name == "hyperband" || name == "bohb") return tune::hyperband({.max_t = 9, .eta = 3});
  if (name == "given") return tune::median_stopping({.grace = 2});
  if (name == "nsga2") return tune::asha({.max_t = 9, .eta = 3});
  if (name == "growing")
    return tune::resource_changing(tune::asha({.max_t = 9, .eta = 3, .promote = true}),
                                   {.total = 8});
  const tune::SearchSpace mutate{{"lr", tune::uniform(0, 1)}};
  if (name == "pb2") return tune::pb2({.interval = 2, .max_t = 13, .mutate = mutate});
  if (name == "pbt") return tune::pbt({.interval = 2, .max_t = 9, .mutate = mutate});
  throw std::invalid_argument("no such scheduler: " + name);
}

/// None: random search.
tune::SearcherFactory searcher_of(const std::string& name) {
  if (name == "tpe") return tune::tpe({.startup_trials = 3});
  if (name == "nsga2") return tune::nsga2({.population = 4});
  if (name == "bohb") return tune::bohb_model();
  if (name == "own") return tune::own_searcher<Halfway>("halfway");
  if (name == "given") return tune::repeated(tune::cmaes({.population = 2}), 2);
  return {};
}

/// None: the sum alone.
std::vector<tune::Objective> objectives_of(const std::string& name) {
  if (name != "nsga2") return {};
  return {{"sum", tune::Max}, {"step", tune::Min}};
}

std::vector<tune::Constraint> constraints_of(const std::string& name) {
  if (name != "nsga2") return {};
  return {{"sum", tune::AtMost, 4}};
}

std::vector<Config> first_of(const std::string& name) {
  return name == "given" ? std::vector<Config>{{.lr = 0.75}} : std::vector<Config>();
}
std::vector<tune::KnownResult<Config>> known_of(const std::string& name) {
  return name == "given" ? std::vector<tune::KnownResult<Config>>{{{.lr = 0.5}, 3.0}}
                         : std::vector<tune::KnownResult<Config>>();
}
tune::StopWhen stop_of(const std::string& name) {
  if (name == "given") return {.reports = 5, .no_better_trials = 7};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string storage = argv[1], scheduler = argv[2];
    reports_left = std::stoi(argv[3]);
    const bool has_cluster = argc > 4;
    const auto objectives = objectives_of(scheduler);
    std::optional<troupe::Cluster> cluster;
    if (has_cluster) cluster.emplace(troupe::init(argc, argv));
    const char* snapshot_after = std::getenv("SNAPSHOT_AFTER");
    const tune::Options<Config> options{
        .space = {{"lr", tune::uniform(0, 1)}},
        .trials = scheduler.starts_with("pb") ? 4u : 14u,
        .metric = objectives.empty() ? "sum" : "",
        .mode = objectives.empty() ? tune::Max : tune::Min,
        .objectives = objectives,
        .constraints = constraints_of(scheduler),
        .scheduler = scheduler_of(scheduler),
        .storage = storage,
        .resume = true,
        .keep_checkpoints = scheduler == "hyperband" ? 1u : 0u,
        .snapshot_after = snapshot_after ? std::stoul(snapshot_after) : std::size_t{16} << 20,
        .config = {.hold = storage + "/hold"},
        .first = first_of(scheduler),
        .known = known_of(scheduler),
        .searcher = searcher_of(scheduler),
        .stop = stop_of(scheduler),
        .show = tune::Show::Lines,
        .in_process = !has_cluster};
    const char* folder = std::getenv("RESUME_FOLDER");
    const auto results =
        folder && *folder ? tune::resume<sums>(folder, options) : tune::run<sums>(options);
    std::cout << "best " << results.best() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << std::endl;
    return 1;
  }
}
