// refused: the bounds and the step of tune::integer are integers
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  int layers = 1;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"layers", tune::integer(0.5, 3)}}, .trials = 3, .metric = "loss"});
}
