// refused: the name of a field is a literal
#include <troupe/tune.hpp>

#include "searched.hpp"

int main(int, char** arguments) {
  const std::string name = arguments[1];
  tune::run<trains>({.space = {{name, tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
