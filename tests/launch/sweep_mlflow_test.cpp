// Sweeps whose MLflow server is reached by a machine that lacks what that takes.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "support/child.hpp"
#include "sweep_support.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr auto* kReports = "echo 'troupe: {\"loss\": 1}'\n";

std::string with_server(const std::string& url) { return "mlflow = \"" + url + "\"\n" + kGrid; }

}  // namespace

TEST_CASE("a sweep without a libcurl that loads says what to install, and makes nothing",
          "[sweep][mlflow]") {
  const auto [content, why] = GENERATE(table<const char*, const char*>(
      {{"x", "/libcurl.so.4: file too short"}, {nullptr, "libcurl.so.4 is 7.74.0"}}));
  const Sweep sweep("touch ran\n" + std::string(kReports), with_server("http://127.0.0.1:1"));
  const auto folder = sweep.folder() + "/lib", library = folder + "/libcurl.so.4";
  std::filesystem::create_directory(folder);
  if (content)
    std::ofstream(library) << content;
  else
    std::filesystem::copy(TROUPE_TEST_OLD_LIBCURL, library);
  auto environment = kNoClusterForSweeps;
  environment.push_back("LD_LIBRARY_PATH=" + folder);
  const auto done = sweep.tune("run", {}, environment);
  INFO(done.output);
  CHECK(done.exit_code == 1);
  CHECK_THAT(done.output, Contains("tune: mlflow needs libcurl 7.87 or newer: ") && Contains(why) &&
                              Contains("install the Debian package libcurl4"));
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/ran"));
  CHECK_FALSE(std::filesystem::exists(sweep.folder() + "/runs"));
}

TEST_CASE("a name of an MLflow server that is looked up without end holds up no sweep",
          "[sweep][mlflow]") {
  const auto can_be_alone = run({"unshare", "--mount", "--net", "sh", "-c",
                                 "ip link set lo up && mount --bind /etc/hosts /etc/resolv.conf"});
  if (can_be_alone.exit_code != 0) {
    WARN("skipped: this user cannot make namespaces, in which no name server answers: " +
         can_be_alone.output);
    return;
  }
  const Sweep sweep(kReports, with_server("http://tracking.example:5000"));
  std::ofstream(sweep.folder() + "/resolv.conf")
      << "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";
  std::ofstream(sweep.folder() + "/silent.py")
      << "import os, socket, sys\n"
         "silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
         "silent.bind(('127.0.0.1', 53))\n"
         "silent.set_inheritable(True)\n"
         "os.execv(sys.argv[1], sys.argv[1:])\n";
  auto environment = kNoClusterForSweeps;
  environment.insert(environment.end(), {"http_proxy=", "all_proxy=", "ALL_PROXY="});
  const auto started = std::chrono::steady_clock::now();
  const auto alone = "cd " + sweep.folder() +
                     " && ip link set lo up && mount --bind resolv.conf /etc/resolv.conf && exec "
                     "\"$@\"";
  const auto done =
      run({"unshare", "--mount", "--net", "sh", "-c", alone, "sh", TROUPE_READERS_PYTHON,
           "silent.py", TROUPE_PROGRAM, "tune", "run", "sweep.toml"},
          environment, std::chrono::seconds(90));
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Contains("3 terminated") &&
                              Contains("MLflow at http://tracking.example:5000: within 10.0 s it "
                                       "has not taken all"));
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(60));
}
