// refused: behind the domain of a field stands its condition
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  const auto when = [](const Config& config) { return config.lr > 0.5 ? "wide" : ""; };
  tune::run<trains>(
      {.space = {{"lr", tune::uniform(0, 1)}, {"width", tune::choice({32, 64}), when}},
       .trials = 3,
       .metric = "loss"});
}
