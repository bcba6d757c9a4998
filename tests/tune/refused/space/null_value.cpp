// refused: nullptr is no value of a field
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{"lr", tune::choice({nullptr, 0.5})}}, .trials = 3, .metric = "loss"});
}
