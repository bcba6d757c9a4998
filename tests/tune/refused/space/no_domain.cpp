// refused: a field of a space holds a domain, such as tune::uniform(0, 1)
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{"lr", [](int step) { return 0.1 * step; }}}, .trials = 3, .metric = "loss"});
}
