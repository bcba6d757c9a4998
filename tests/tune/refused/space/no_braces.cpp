// refused: the values stand in braces
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>({.space = {{"lr", tune::choice(0.1, 0.2)}}, .trials = 3, .metric = "loss"});
}
