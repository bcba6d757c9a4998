#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
namespace fs = std::filesystem;

namespace {

/// A token file to start a head with, and a state folder of that head's own.
struct Fresh {
  TemporaryFolder folder;
  const std::string file = folder.path() + "/token";
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  const std::vector<std::string> head{TROUPE_PROGRAM, "head",         "--port", "0",
                                      "--no-node",    "--token-file", file};

  void write(const std::string& text,
             fs::perms mode = fs::perms::owner_read | fs::perms::owner_write) const {
    std::ofstream(file) << text;
    fs::permissions(file, mode);
  }
};

}  // namespace

TEST_CASE("a token file that is named comes before TROUPE_TOKEN", "[cli][token]") {
  TestCluster cluster(1);
  auto environment = cluster.environment();
  environment.at(1) = "TROUPE_TOKEN=" + std::string(64, 'a');
  const auto file = cluster.token_file();
  const auto status = run(
      {TROUPE_PROGRAM, "status", "--head", cluster.address(), "--token-file", file}, environment);
  INFO(status.output);
  CHECK(status.exit_code == 0);
  const auto driver =
      run({TROUPE_TEST_DRIVER, "task", "--address", cluster.address(), "--token-file", file},
          environment);
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
}

TEST_CASE("an empty token file of a head is to be removed, not copied", "[cli][token][refusal]") {
  const Fresh fresh;
  fresh.write("");
  const auto head = run(fresh.head, fresh.environment);
  CHECK(head.exit_code == 1);
  CHECK_THAT(head.output,
             Catch::Contains(fresh.file + " is empty: remove it") && !Catch::Contains("copy"));
}

TEST_CASE("a file that holds no token is not to be closed to others", "[cli][token][refusal]") {
  const Fresh fresh;
  for (const std::string& text :
       {std::string("root:x:0:0:root:/root:/bin/sh\n"), std::string(100'000, 'a')}) {
    fresh.write(text, fs::perms(0644));
    const auto head = run(fresh.head, fresh.environment);
    CHECK(head.exit_code == 1);
    CHECK_THAT(head.output,
               Catch::Contains(fresh.file + " is no token file") && !Catch::Contains("chmod"));
  }
}

TEST_CASE("a head that dies while it writes its token leaves none, and the next one makes it",
          "[cli][token]") {
  const Fresh fresh;
  std::string command = "ulimit -c 0; ulimit -f 0; exec";  // SIGXFSZ at the first byte of a file
  for (const auto& argument : fresh.head) command += " '" + argument + "'";
  CHECK(run({"/bin/sh", "-c", command}, fresh.environment).exit_code == 128 + SIGXFSZ);
  CHECK_FALSE(fs::exists(fresh.file));

  Child head(fresh.head, fresh.environment);
  head.wait_for_output("token file:");
  CHECK(fs::file_size(fresh.file) == 65);
  CHECK(fs::status(fresh.file).permissions() == fs::perms(0600));
  CHECK(run({TROUPE_PROGRAM, "stop", "--token-file", fresh.file}, fresh.environment).exit_code ==
        0);
  CHECK(head.wait());
}
