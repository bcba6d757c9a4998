// refused: a configuration is assigned to, so that no field of it may be const
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  const int layers = 3;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
