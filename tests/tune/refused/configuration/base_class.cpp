// refused: a configuration has no base class
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Common {
  double lr = 0.1;
};
struct Config : Common {
  int layers = 1;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"layers", tune::integer(1, 3)}}, .trials = 3, .metric = "loss"});
}
