#include <cstdlib>
#include <string>
#include <vector>

#include "node/spawn/zygote.hpp"
#include "run_tests.hpp"
#include "test_program.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const bool is_node = argc > 1 && arguments[1] == troupe::node::test::kNodeArgument;
  if (is_node || std::getenv(troupe::node::kBootVariable) != nullptr)
    return troupe::node::test::program_main(arguments);
  return troupe::test::run_tests(argc, argv);
}
