// refused: a configuration is sent to its trials, where a raw pointer points to nothing
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Model {
  double dropout = 0;
  const int* width = nullptr;
};
struct Config {
  double lr = 0.1;
  Model model = {};
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
