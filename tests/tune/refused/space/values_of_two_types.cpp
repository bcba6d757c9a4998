// refused: the values in these braces are of no one type
#include <troupe/tune.hpp>

#include <optional>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{"width", tune::choice({std::nullopt, 64})}}, .trials = 3, .metric = "loss"});
}
