// main of tests that are drivers, and so their own worker processes: started as one, the program
// goes no further than init.
#include <cstdlib>

#include <troupe/cluster.hpp>

#include "run_tests.hpp"

int main(int argc, char** argv) {
  if (std::getenv("TROUPE_BOOT") != nullptr) {
    const auto never = troupe::init(argc, argv);
    return 1;
  }
  return troupe::test::run_tests(argc, argv);
}
