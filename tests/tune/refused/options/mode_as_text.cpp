// refused: .mode is tune::Min or tune::Max
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>(
      {.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss", .mode = "min"});
}
