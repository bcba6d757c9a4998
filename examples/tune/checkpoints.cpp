// Trials that lose nothing when they fail: each writes a checkpoint with every report, is struck by a
// failure half-way, and goes on from its last checkpoint instead of from its start.
//
//   checkpoints [--address HOST:PORT]
//
// How the trials go is shown on standard error. It prints:
//
//   4 trials failed after step 5, and each went on from there
//   the best one ended after step 9
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>

#include <unistd.h>
#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

namespace fs = std::filesystem;
namespace tune = troupe::tune;

namespace {

struct Config {
  double lr = 0.1;
};

// [trial]
struct Descent {
  double x = 1;
  int step = 0;
};

Descent restored(const fs::path& checkpoint) {  // empty: there is none, begin at the start
  Descent descent;
  if (!checkpoint.empty()) std::ifstream(checkpoint / "descent") >> descent.x >> descent.step;
  return descent;
}

fs::path saved(const Descent& descent, const fs::path& storage) {
  const auto folder = storage / ("step-" + std::to_string(descent.step));  // new with each report
  fs::create_directories(folder);
  std::ofstream(folder / "descent") << std::setprecision(17) << descent.x << ' ' << descent.step;
  return folder;
}

void descend(tune::Context& ctx, const Config& config) {
  auto descent = restored(ctx.restore_from());
  while (descent.step < 9) {
    descent.x -= config.lr * descent.x;
    ++descent.step;
    const auto checkpoint = saved(descent, ctx.storage());
    if (ctx.report({{"loss", descent.x * descent.x}}, checkpoint) == troupe::Verdict::Stop) return;
    const bool is_first_attempt = ctx.restore_from().empty();
    if (is_first_attempt && descent.step == 5) throw std::runtime_error("a failure at step 5");
  }
}
// [/trial]

int search(const fs::path& storage) {
  // [search]
  const auto results = tune::run<descend>({.space = {{"lr", tune::loguniform(1e-3, 1.0)}},
                                           .trials = 4,
                                           .metric = "loss",
                                           .mode = tune::Min,
                                           .storage = storage,
                                           .max_failures = 1});
  // [/search]
  if (const int code = results.exit_code()) return code;
  int resumed = 0;
  for (const auto& [config, trial, text] : results.trials())
    resumed += trial.failures == 1 && trial.launched_from.ends_with("step-5");
  const auto& best = results.best();
  std::cout << resumed << " trials failed after step 5, and each went on from there\n"
            << "the best one ended after step " << restored(best.checkpoint()).step << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto storage =
      fs::temp_directory_path() / ("troupe-checkpoints-" + std::to_string(::getpid()));
  int code = 0;
  try {
    auto cluster = troupe::init(argc, argv);
    code = search(storage);
  } catch (const std::exception& error) {
    std::cerr << "checkpoints: " << error.what() << '\n';
    code = 1;
  }
  fs::remove_all(storage);
  return code;
}
