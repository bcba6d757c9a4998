#include "node/spawn/never_began.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include "node/spawn/child.hpp"

namespace troupe::node {
namespace {

bool is_for_api(const Program& program) { return program.audience == config::Audience::Api; }

}  // namespace

std::string took_too_long(const Program& program, std::chrono::milliseconds limit) {
  if (is_for_api(program)) {
    return fmt::format(
        "did not call troupe::init within {} ms of its start; call it early in main(), before long "
        "work",
        limit.count());
  }
  return fmt::format(
      "was not ready within {} ms of its start: look whether the machine is short of memory or of "
      "CPU time, or its disk is slow",
      limit.count());
}

std::string ended_before_init(const Program& program, std::string_view who, int status) {
  const auto ended = describe_status(status);
  if (!is_for_api(program)) return fmt::format("{} {} before it was ready", who, ended);
  const bool returned = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return fmt::format(
      "{} {} before it called troupe::init{}", who, ended,
      returned
          ? "; a node runs main() up to troupe::init, with the driver's arguments and with its "
            "own environment: call troupe::init there too, before main() returns"
          : "");
}

std::string executed_anew(const Program& program, std::string_view what_it_has) {
  const auto what = fmt::format(
      "the program {} cannot fork, as it has {}; each of its worker processes is executed anew, "
      "which costs the time to load it",
      program.path, what_it_has);
  return is_for_api(program) ? what + ". Start threads and use CUDA after troupe::init, not before"
                             : what;
}

}  // namespace troupe::node
