// refused: behind the domain of a field stands its condition
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  int width = 64;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  const auto when = [](const Config& config) { return config.lr > 0.5 ? "wide" : ""; };
  tune::run<trains>(
      {.space = {{"lr", tune::uniform(0, 1)}, {"width", tune::choice({32, 64}), when}},
       .trials = 3,
       .metric = "loss"});
}
