// refused: a field of a space holds a domain, such as tune::uniform(0, 1)
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>(
      {.space = {{"lr", [](int step) { return 0.1 * step; }}}, .trials = 3, .metric = "loss"});
}
