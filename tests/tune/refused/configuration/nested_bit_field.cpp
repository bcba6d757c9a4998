// refused: a bit-field cannot travel
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Flags {
  unsigned depth : 3 = 1;
};
struct Config {
  double lr = 0.1;
  Flags flags = {};
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
