// refused: the name of a field is a literal
#include <string>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  int width = 64;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main(int, char** arguments) {
  const std::string name = arguments[1];
  tune::run<trains>({.space = {{name, tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
