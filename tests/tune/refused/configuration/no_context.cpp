// refused: a trainable is a function
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
};

double loss(const Config& config) { return config.lr; }

int main() {
  tune::run<loss>({.space = {{"lr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
