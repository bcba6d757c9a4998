#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/mount.h>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "job_support.hpp"

using namespace troupe::test;
namespace fs = std::filesystem;

/// What a job prints while the disk of its log is full.

namespace {

/// A file system of 256 KiB in a folder, gone with this object.
class DiskOfLogs {
 public:
  DiskOfLogs() : is_there_(::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=256k") == 0) {}
  ~DiskOfLogs() {
    if (is_there_) ::umount2(path().c_str(), MNT_DETACH);
  }
  DiskOfLogs(const DiskOfLogs&) = delete;
  DiskOfLogs& operator=(const DiskOfLogs&) = delete;

  const std::string& path() const { return folder_.path(); }
  bool is_there() const { return is_there_; }
  /// Of its room, with a file of its own.
  void take_half() const { std::ofstream(filler_) << std::string(128 << 10, 'x') << std::flush; }
  void give_back() const { fs::remove(filler_); }

 private:
  TemporaryFolder folder_;
  const std::string filler_ = folder_.path() + "/filler";
  const bool is_there_;
};

constexpr long kPrinted = 400'000;  // bytes

/// As the log has it, "troupe: 5 bytes that this job printed are missing here: ..."; 0: it has no
/// such line, or several.
long missing_in(const std::string& log) {
  const std::string words =
      " bytes that this job printed are missing here: No space left on device\n";
  const auto at = log.find(words);
  if (at == std::string::npos || log.find(words, at + 1) != std::string::npos) return 0;
  const auto number = log.rfind(' ', at - 1) + 1;
  return std::stol(log.substr(number, at - number));
}

}  // namespace

TEST_CASE("a job whose log's disk is full goes on, and what is lost is told with its size",
          "[launch][cluster]") {
  const DiskOfLogs disk;
  if (!disk.is_there()) {
    WARN("skipped: mounting a small file system needs root");
    return;
  }
  TestCluster cluster(0);
  cluster.add_worker({"--log-dir", disk.path()});
  disk.take_half();
  const auto go_on = cluster.folder() + "/go_on";
  job(cluster,
      {"submit", "--name", "loud", "--", "sh", "-c",
       fmt::format("yes | head -c {}; until [ -e $0 ]; do sleep 0.02; done; echo after", kPrinted),
       go_on});
  CHECK(eventually([&] { return row(cluster, "loud").at("lost_output_bytes") > 0; }));
  CHECK(state(cluster, "loud") == "running");
  CHECK_THAT(job(cluster, {"list"}).output, Catch::Contains("running; ") &&
                                                Catch::Contains("of its output are lost") &&
                                                Catch::Contains("No space left on device"));
  CHECK_THAT(job(cluster, {"logs", "loud"}).output,
             Catch::Contains("of what loud printed are lost") && !Catch::Contains("missing here"));

  disk.give_back();
  std::ofstream{go_on};
  CHECK(is_over(cluster, "loud"));
  const auto log = job(cluster, {"logs", "loud"}).output;
  CHECK_THAT(log, Catch::Contains("missing here: No space left on device\nafter\n") &&
                      Catch::Contains("of what loud printed are lost"));
  CHECK(missing_in(log) == row(cluster, "loud").at("lost_output_bytes"));
  const auto kept =
      std::count(log.begin(), log.begin() + static_cast<long>(log.find("troupe:")), 'y');
  CHECK(std::abs(2 * kept + missing_in(log) - kPrinted) <= 1);  // the loss may begin within a line
  CHECK(state(cluster, "loud") == "succeeded");
}

TEST_CASE(
    "the log of a job that ended while its disk was full is told of the loss once there is room",
    "[launch][cluster]") {
  const DiskOfLogs disk;
  if (!disk.is_there()) {
    WARN("skipped: mounting a small file system needs root");
    return;
  }
  TestCluster cluster(0);
  cluster.add_worker({"--log-dir", disk.path()});
  disk.take_half();
  job(cluster, {"submit", "--name", "last", "--", "sh", "-c",
                fmt::format("yes | head -c {}; exit 3", kPrinted)});
  CHECK(is_over(cluster, "last"));
  CHECK(state(cluster, "last") == "failed with exit code 3");
  const long lost = row(cluster, "last").at("lost_output_bytes");
  CHECK(lost > 0);
  CHECK(missing_in(job(cluster, {"logs", "last"}).output) == 0);
  disk.give_back();
  CHECK(eventually([&] { return missing_in(job(cluster, {"logs", "last"}).output) == lost; }));
  CHECK(row(cluster, "last").at("lost_output_bytes") == lost);
  CHECK(state(cluster, "last") == "failed with exit code 3");
}

TEST_CASE("a job that has printed nothing says so, and where its log is asked for elsewhere",
          "[launch][cluster]") {
  TestCluster cluster(1);
  job(cluster, {"submit", "--name", "quiet", "--", "sleep", "600"});
  CHECK(eventually([&] { return state(cluster, "quiet") == "running"; }));
  const auto logs = job(cluster, {"logs", "quiet"});
  CHECK(logs.exit_code == 0);
  CHECK_THAT(logs.output, Catch::EndsWith("troupe: job quiet has printed nothing so far\n"));
  const auto other = run({TROUPE_PROGRAM, "logs", "quiet"}, cluster.environment());
  CHECK(other.exit_code == 1);
  CHECK_THAT(other.output, Catch::Contains("`troupe job logs quiet` has what it printed"));
  job(cluster, {"forget", "quiet"});
}

TEST_CASE("bytes that are no text are in the log of a job as they are", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto followed = job(cluster, {"submit", "--wait", "--name", "binary", "--", "sh", "-c",
                                      "printf 'a\\000b\\377\\033[1m\\r\\n\\200'; exit 3"});
  CHECK(followed.exit_code == 3);
  CHECK(state(cluster, "binary") == "failed with exit code 3");
  const auto logs = job(cluster, {"logs", "binary"});
  CHECK(logs.exit_code == 0);
  CHECK_THAT(logs.output, Catch::Contains(std::string("a\0b\xff\x1b[1m\r\n\x80", 11)));
  const auto listed = job(cluster, {"list"});
  CHECK(listed.exit_code == 0);
  CHECK_THAT(listed.output, Catch::Contains("failed with exit code 3"));
}
