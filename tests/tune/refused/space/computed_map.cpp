// refused: a field of a space holds a domain, such as tune::uniform(0, 1)
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>({.space = {{"widths", [](const Config&) { return std::map<int, int>(); }}},
                     .trials = 3,
                     .metric = "loss"});
}
