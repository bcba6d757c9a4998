#pragma once

#include <string>
#include <vector>

namespace troupe::test {

/// A program of examples/ and how a test runs it.
struct Example {
  std::string name;                         ///< its folder and its name: "core/pipeline"
  std::vector<std::string> arguments = {};  ///< besides --address
  std::string input = "/dev/null";          ///< file that is its standard input
};

/// What the head comment of its source says that it prints: the lines that stand below a paragraph
/// which ends with "prints:". Fails the test where there are none.
std::string promised_output(const Example& example);

/// What it prints to its standard output, in a private cluster, and in one of a head and two workers.
/// Each checks that it ends well, and leaves no process and no lease behind.
std::string run_privately(const Example& example);
std::string run_on_cluster(const Example& example);

/// Runs it both ways, and checks that it prints what it promises.
void check_example(const Example& example);

}  // namespace troupe::test
