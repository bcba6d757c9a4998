#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>
#include <nlohmann/json.hpp>
#include <troupe/cluster.hpp>
#include <troupe/train/context.hpp>
#include <troupe/tune.hpp>

#include "arguments.hpp"
#include "core/harness.hpp"
#include "tune/many_trials.hpp"

/// What a search costs beside its training, on a private cluster of this machine: a takeover in
/// population-based training, from the decision to the first report of the new attempt; a paused
/// trial resumed, from its launch to its first report; trivial trials, each in a process of its
/// own; reports, with all files written; one-second trials on 16 places; the driver's memory.
///
///   tune_bench [--json] [--smoke]
namespace {

namespace tune = troupe::tune;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Config {
  double rate = 0.1;
  int steps = 40;
};

/// Steps of 2 ms, each reported before it with a checkpoint of one number.
void counts(tune::Context& ctx, const Config& config) {
  int step = 0;
  if (!ctx.restore_from().empty()) std::ifstream(ctx.restore_from()) >> step;
  if (ctx.rank() == 0) fs::create_directories(ctx.storage());
  while (++step <= config.steps) {
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(step));
    if (ctx.rank() == 0) std::ofstream(checkpoint) << step;
    if (ctx.report({{"score", config.rate * step}}, checkpoint) == troupe::Verdict::Stop) return;
    ::usleep(2'000);  // so that one member is not at its end before the other begins
  }
}

/// A data-parallel step of a small net between two reports.
void trains(troupe::train::Context& ctx, const Config& config) {
  auto net = ctx.prepare(torch::nn::Sequential(torch::nn::Linear(64, 64), torch::nn::ReLU(),
                                               torch::nn::Linear(64, 10)));
  auto optimizer = ctx.prepare(torch::optim::SGD(net->parameters(), config.rate));
  const auto x = torch::randn({32, 64});
  const auto y = torch::randint(10, {32});
  for (const int epoch : ctx.epochs(config.steps)) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(x), y).backward();
    optimizer.step();
    ctx.report({{"score", config.rate * epoch}}, ctx.checkpoint(net, optimizer));
  }
}

void trivial(tune::Context& ctx, const Config& config) { ctx.report({{"score", config.rate}}); }

void reports(tune::Context& ctx, const Config& config) {
  for (int step = 0; step < config.steps; ++step) ctx.report({{"score", config.rate}});
}

/// The median, and as a note the rest of what was timed.
void print_times(const troupe::bench::Report& report, const std::string& name,
                 std::vector<double> seconds, const std::string& what) {
  if (seconds.empty()) return report.missing(name, "ms", "it never happened");
  std::ranges::sort(seconds);
  const auto at = [&](double part) {
    return 1e3 * seconds[static_cast<std::size_t>(part * static_cast<double>(seconds.size() - 1))];
  };
  report.print(name, at(0.5), "ms",
               fmt::format("{}; 90th percentile {:.2f}, most {:.2f}, {} times", what, at(0.9),
                           at(1), seconds.size()));
}

/// The times between two events of each trial in a run's journal.
std::vector<double> times_between(const fs::path& folder, auto begins) {
  std::vector<double> times;
  std::map<int, double> since;
  std::ifstream in(folder / "journal.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto event = nlohmann::json::parse(line);
    if (!event.contains("trial")) continue;
    const int trial = event.at("trial");
    const double now = event.at("now");
    if (event.at("event") == "reported" && since.contains(trial)) {
      times.push_back(now - since[trial]);
      since.erase(trial);
    }
    if (begins(event)) since[trial] = now;
  }
  return times;
}

bool takes_over(const nlohmann::json& event) {
  return event.at("event") == "reported" && event.at("decision") == "exploit" &&
         !event.at("exploit").value("in_turn", false);
}
bool resumes(const nlohmann::json& event) {
  return event.at("event") == "launched" && event.at("attempt") > 1;
}

template <auto fn>
tune::Results<Config> population(const fs::path& storage, std::uint64_t members, int steps) {
  return tune::run<fn>(
      {.space = {{"rate", tune::uniform(0.1, 1.0)}},
       .trials = members,
       .metric = "score",
       .mode = tune::Max,
       .scheduler = tune::pbt({.interval = 2, .mutate = {{"rate", tune::uniform(0.1, 1.0)}}}),
       .each = {.workers = 2},
       .storage = storage,
       .seed = 1,
       .config = {.steps = steps},
       .show = tune::Show::None});
}

template <auto fn>
double seconds_for(std::uint64_t trials, int steps, const std::string& storage) {
  const auto start = Clock::now();
  tune::run<fn>({.trials = trials,
                 .metric = "score",
                 .storage = storage,
                 .config = {.steps = steps},
                 .show = tune::Show::None});
  return troupe::bench::seconds_since(start);
}

void takeovers(const troupe::bench::Report& report, const fs::path& folder) {
  const int steps = sized(report, 60, 12);
  // Two gangs of two, both with a place: at each interval the worse one takes over the other.
  const auto plain = population<counts>(folder / "plain", 2, steps);
  print_times(report, "takeover_ms", times_between(plain.folder(), takes_over),
              "a gang of two, from the decision to the next report");
  const auto torch = population<trains>(folder / "torch", 2, steps);
  print_times(report, "takeover_torch_ms", times_between(torch.folder(), takes_over),
              "the same with LibTorch");
  const auto turns = population<counts>(folder / "turns", 6, sized(report, 16, 6));
  print_times(report, "resume_ms", times_between(turns.folder(), resumes),
              "six such on two places, from the launch");
  const auto torch_turns = population<trains>(folder / "torch_turns", 6, sized(report, 16, 6));
  print_times(report, "resume_torch_ms", times_between(torch_turns.folder(), resumes),
              "the same with LibTorch");
}

void search_costs(const troupe::bench::Report& report, const fs::path& folder) {
  const auto cluster = troupe::init({.cpus = 4});
  takeovers(report, folder);
  report.print("trials_50_s", seconds_for<trivial>(50, 1, {}), "s",
               "50 trivial trials, a process each");
  const int many = sized(report, 1000, 20);
  report.print("trials_1000_s", seconds_for<trivial>(static_cast<std::uint64_t>(many), 1, {}), "s",
               "1,000 of them");
  const int each = sized(report, 5000, 100);
  report.print("reports_per_s",
               4 * each / seconds_for<reports>(4, each, (folder / "reports").string()), "/s",
               "of four trials at once, all files on");
}

}  // namespace

int main(int argc, char** argv) {
  troupe::bench::Options options;
  troupe::bench::Arguments arguments("What a search costs beside its training, on this machine.");
  arguments.flag("--json", options.json, "a JSON line for each figure");
  arguments.flag("--smoke", options.smoke, "a few of each: shows that it runs, not how fast");
  arguments.parse(argc, argv);
  const fs::path folder =
      fs::temp_directory_path() / fmt::format("troupe-tune-bench-{}", ::getpid());
  const troupe::bench::Report report(options);
  search_costs(report, folder);
  troupe::bench::many_trials(report);
  fs::remove_all(folder);
}
