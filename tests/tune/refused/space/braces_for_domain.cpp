// refused: braces are no domain
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() { tune::run<trains>({.space = {{"width", {64, 128}}}, .trials = 3, .metric = "loss"}); }
