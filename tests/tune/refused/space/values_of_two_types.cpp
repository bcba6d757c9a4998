// refused: the values in these braces are of no one type
#include <optional>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Optimizer {
  double lr = 0.1;
};
struct Config {
  Optimizer optimizer = {};
  int width = 64;
};

void trains(tune::Context& ctx, const Config& config) {
  ctx.report({{"loss", config.optimizer.lr}});
}

int main() {
  tune::run<trains>(
      {.space = {{"width", tune::choice({std::nullopt, 64})}}, .trials = 3, .metric = "loss"});
}
