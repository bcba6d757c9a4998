#include "example.hpp"

#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "support/cluster.hpp"

namespace troupe::test {
namespace {

std::string contents(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// -> its standard output.
std::string run_with(const Example& example, std::vector<std::string> more,
                     std::vector<std::string> environment) {
  const TemporaryFolder folder;
  const auto errors = folder.path() + "/errors";
  environment.insert(environment.end(),
                     {"EXAMPLE_INPUT=" + example.input, "EXAMPLE_ERRORS=" + errors});
  std::vector<std::string> command{"sh", "-c",
                                   R"(exec "$@" < "$EXAMPLE_INPUT" 2> "$EXAMPLE_ERRORS")", "sh",
                                   TROUPE_EXAMPLES_BUILT + "/" + example.name};
  command.insert(command.end(), example.arguments.begin(), example.arguments.end());
  command.insert(command.end(), more.begin(), more.end());
  const auto done = run(std::move(command), environment, std::chrono::seconds(100));
  INFO(example.name << " said on its standard error:\n" << contents(errors));
  CHECK(done.exit_code == 0);
  return done.output;
}

}  // namespace

std::string run_privately(const Example& example) {
  const TemporaryFolder folder;
  const auto mark = "XDG_STATE_HOME=" + folder.path();
  auto printed = run_with(example, {}, {mark, "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  CHECK(eventually([&] { return processes_with(mark).empty(); }));
  return printed;
}

std::string run_on_cluster(const Example& example) {
  TestCluster cluster(2);
  auto printed =
      run_with(example, {"--address", cluster.address()},
               {"XDG_STATE_HOME=" + cluster.folder(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  CHECK(cluster.all_is_free());
  return printed;
}

std::string promised_output(const Example& example) {
  const std::string mark = "//   ";
  std::ifstream source(TROUPE_EXAMPLES + "/" + example.name + ".cpp");
  std::string promised;
  bool is_output = false;
  for (std::string line; std::getline(source, line) && line.starts_with("//");) {
    if (line.ends_with("prints:"))
      is_output = true;
    else if (is_output && line.starts_with(mark))
      promised += line.substr(mark.size()) + '\n';
  }
  INFO("the first lines of " << example.name << ".cpp say what it prints");
  REQUIRE_FALSE(promised.empty());
  return promised;
}

void check_example(const Example& example) {
  const auto promised = promised_output(example);
  CHECK(run_privately(example) == promised);
  CHECK(run_on_cluster(example) == promised);
}

}  // namespace troupe::test
