// refused: braces are no domain
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  int width = 64;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() { tune::run<trains>({.space = {{"width", {64, 128}}}, .trials = 3, .metric = "loss"}); }
