// refused: the bounds and the step of tune::integer are integers
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>({.space = {{"width", tune::integer(0.5, 3)}}, .trials = 3, .metric = "loss"});
}
