// refused: this is a field of another struct
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{&Layer::width, tune::integer(1, 3)}}, .trials = 3, .metric = "loss"});
}
