// refused: behind the name of a field stands what it holds
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() { tune::run<trains>({.space = {{"width"}}, .trials = 3, .metric = "loss"}); }
