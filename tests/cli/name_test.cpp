// Names that are none, to a cluster that lives on.
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

TEST_CASE("a worker's names that are none are refused with the option, and its head serves on",
          "[cli][name][refusal]") {
  TestCluster cluster(1);
  struct Bad {
    std::string option, value, wrong;
  };
  const std::vector<Bad> all{
      {"--name", "bad\xff\xfe", "it is not UTF-8"},
      {"--name", "\x1b[31m", "it has a control character"},
      {"--name", std::string(257, 'x'), "it has 257 bytes"},
      {"--resource", "\xff=1", "it is not UTF-8"},
      {"--resource", "two\nlines=1", "it has a control character"},
      {"--label", "\xff=a", "it is not UTF-8"},
      {"--label", "zone=\xff", "it is not UTF-8"},
  };
  for (const auto& [option, value, wrong] : all) {
    const auto worker = run({TROUPE_PROGRAM, "worker", "--head", cluster.address(), option, value},
                            cluster.environment());
    INFO(option << ' ' << value << ": " << worker.output);
    CHECK((worker.exit_code == 1 || worker.exit_code == 2));
    CHECK_THAT(worker.output,
               Catch::Contains(option) && Catch::Contains(wrong) &&
                   Catch::Contains("give 1 to 256 bytes of UTF-8 without control characters"));
    CHECK(nlohmann::json::parse(cluster.status())["nodes"].size() == 1);
  }
  CHECK(cluster.run_driver("task").exit_code == 0);
}

TEST_CASE("a node is told that another one has its name, and so is whoever reads the head's log",
          "[cli][name]") {
  TestCluster cluster(2, 1);  // w1 and w2
  cluster.add_worker({"--cpus", "1", "--name", "w1"});
  const std::string note =
      "node 1 has the name 'w1', too: only their numbers tell the two apart in statuses, logs and "
      "errors; start one of them with another --name";
  cluster.worker(2).wait_for_output(note);
  cluster.head().wait_for_output("node 3 (w1): " + note);
  CHECK_THAT(cluster.worker(1).output(), !Catch::Contains("has the name"));
}

TEST_CASE("a program may have any file name: its cluster serves on and shows it in one line",
          "[cli][name]") {
  TestCluster cluster(1);
  const std::vector<std::pair<std::string, std::string>> all{
      {"pr\xe9g", "pr\xef\xbf\xbdg"}, {"two\nlines", "two\xef\xbf\xbdlines"}};
  for (const auto& [file, shown] : all) {
    TemporaryFolder folder;
    const auto program = folder.path() + "/" + file;
    std::filesystem::copy_file(TROUPE_TEST_DRIVER, program);
    CHECK(run({program, "task", "--address", cluster.address()}, cluster.environment()).exit_code ==
          0);
    Child holder({program, "hold", "--address", cluster.address()}, cluster.environment());
    holder.wait_for_output("holding");
    CHECK(nlohmann::json::parse(cluster.status())["jobs"][0]["name"] == shown);
    const auto status = run({TROUPE_PROGRAM, "status"}, cluster.environment());
    CHECK(status.exit_code == 0);
    CHECK_THAT(status.output, Catch::Contains(": " + shown + " (pid "));
  }
}
