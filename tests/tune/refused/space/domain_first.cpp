// refused: a field of a space begins with its name
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>({.space = {{tune::uniform(0, 1), "lr"}}, .trials = 3, .metric = "loss"});
}
