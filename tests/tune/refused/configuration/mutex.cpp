// refused: a configuration is copied to its trials
#include <troupe/tune.hpp>

#include <mutex>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  std::mutex mutex;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
