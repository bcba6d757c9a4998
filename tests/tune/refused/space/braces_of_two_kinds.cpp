// refused: the values in these braces are of no one type
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{"layer", tune::choice({{64, 0.1}, {128}})}}, .trials = 3, .metric = "loss"});
}
