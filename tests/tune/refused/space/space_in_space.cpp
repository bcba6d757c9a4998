// refused: braces are no domain
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{"layer", {{"dropout", tune::uniform(0, 1)}}}}, .trials = 3, .metric = "loss"});
}
