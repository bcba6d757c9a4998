// refused: a configuration is an aggregate
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

class Config {
 public:
  double lr = 0.1;

 private:
  int hidden_ = 0;
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
