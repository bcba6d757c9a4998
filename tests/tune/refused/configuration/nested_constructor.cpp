// refused: this type cannot travel
#include <vector>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Layer {
  Layer() {}
  int width = 64;
};
struct Model {
  double dropout = 0;
  std::vector<Layer> layers = {};
};
struct Config {
  double lr = 0.1;
  Model model = {};
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
