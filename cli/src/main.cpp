#include <cstdlib>

#include <troupe/cluster.hpp>

#include "command_line/command_line.hpp"
#include "config/audience.hpp"
#include "host/limits.hpp"
#include "node/spawn/zygote.hpp"
#include "output.hpp"

int main(int argc, char** argv) {
  troupe::cli::keep_standard_descriptors();
  troupe::config::speak_to(troupe::config::Audience::CommandLine);
  troupe::launch::take_file_limit_as_error();
  // Started by a node, for a gang or a job of this very program: what it was told is the driver's
  // business, and may name what is not on this machine.
  if (std::getenv(troupe::node::kBootVariable)) const auto never = troupe::init();
  return troupe::cli::run_command_line(argc, argv);
}
