// actors_started_20 in a program that has LibTorch: each fork copies the page tables of that too.
// Prints "rate R", the mean of the rounds, per second.
//
//   bench_actors_with_torch SECONDS
#include <cstdlib>
#include <iostream>
#include <string>

#include <ATen/Version.h>

#include "start_twenty.hpp"

int main(int argc, char** argv) {
  using namespace troupe::bench;
  const auto cluster = troupe::init(argc, argv);
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 1;
  if (at::show_config().empty()) return 1;  // LibTorch is there, and not only named to the linker
  start_twenty();
  double sum = 0;
  int rounds = 0;
  for (const auto start = Clock::now(); rounds < 4 || seconds_since(start) < seconds; ++rounds)
    sum += 20 / start_twenty();
  std::cout << "rate " << sum / rounds << " of " << rounds << " rounds" << std::endl;
}
