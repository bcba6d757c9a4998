// refused: a value of a choice, an ordinal or a grid is a number, a truth value, text
#include <functional>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  const std::function<int()> one = [] { return 1; };
  tune::run<trains>({.space = {{"lr", tune::choice({one, one})}}, .trials = 3, .metric = "loss"});
}
