// refused: the values in these braces are of no one type
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Layer {
  int width = 64;
  double dropout = 0;
};
struct Config {
  double lr = 0.1;
  Layer layer = {};
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>(
      {.space = {{"layer", tune::choice({{64, 0.1}, {128, 0.2}})}}, .trials = 3, .metric = "loss"});
}
