// refused: a field of this type can not be searched
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>(
      {.space = {{&Config::table, tune::integer(1, 3)}}, .trials = 3, .metric = "loss"});
}
