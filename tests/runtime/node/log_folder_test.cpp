#include "node/log_folder.hpp"

#include <sys/wait.h>
#include <catch2/catch.hpp>

#include "waiting.hpp"

namespace troupe::node {
namespace {

/// The number of a process that has ended.
pid_t ended_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

struct Logs {
  test::TemporaryDirectory directory;
  std::filesystem::path parent = directory.path / "logs";

  std::filesystem::path folder(const std::string& name, int age_seconds) const {
    const auto path = parent / name;
    std::filesystem::create_directories(path / "inside");
    std::ofstream(path / "job-1-process-2.log") << "a line\n";
    age(path, age_seconds);
    return path;
  }
  static void age(const std::filesystem::path& path, int seconds) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
};

TEST_CASE("of the log folders of ended nodes the last ones stay", "[node][log]") {
  Logs logs;
  const auto pid = ended_process();
  std::vector<std::filesystem::path> folders;
  for (int i = 0; i < 5; ++i) {
    folders.push_back(logs.parent / ("node-" + std::to_string(pid) + std::to_string(i)));
    LogFolder used;
    REQUIRE(used.open(folders.back()).empty());
  }
  for (int i = 0; i < 5; ++i) Logs::age(folders[i], 100 * i);
  CHECK(remove_old_logs(logs.parent, 2) == 3);
  for (int i = 0; i < 5; ++i) CHECK(std::filesystem::exists(folders[i]) == (i < 2));
  CHECK(remove_old_logs(logs.parent, 2) == 0);
}

TEST_CASE("a log folder that is in use stays, whatever its number, until it is not",
          "[node][log]") {
  Logs logs;
  // As of another machine.
  const auto path = logs.parent / ("node-" + std::to_string(ended_process()));
  {
    LogFolder first, second;
    REQUIRE(first.open(path).empty());
    REQUIRE(second.open(path).empty());
    CHECK(remove_old_logs(logs.parent, 0) == 0);
  }
  CHECK(remove_old_logs(logs.parent, 0) == 1);
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a folder without a lock goes where there is no such process", "[node][log]") {
  Logs logs;
  const auto living = logs.folder("node-" + std::to_string(::getpid()), 1000);
  const auto ended = logs.folder("node-" + std::to_string(ended_process()), 1000);
  CHECK(remove_old_logs(logs.parent, 0) == 1);
  CHECK(std::filesystem::exists(living));
  CHECK(!std::filesystem::exists(ended));
}

TEST_CASE("what is no log folder stays, and what a link leads to", "[node][log]") {
  Logs logs;
  const auto elsewhere = logs.directory.path / "elsewhere";
  std::filesystem::create_directories(elsewhere / "kept");
  for (const auto* name : {"node-", "node-12x", "notes", "anode-1"}) logs.folder(name, 1000);
  std::ofstream(logs.parent / "node-7") << "a file";
  std::filesystem::create_directory_symlink(elsewhere, logs.parent / "node-8");
  const auto old = logs.folder("node-" + std::to_string(ended_process()), 1000);
  std::filesystem::create_directory_symlink(elsewhere, old / "link");
  CHECK(remove_old_logs(logs.parent, 0) == 1);
  CHECK(!std::filesystem::exists(old));
  CHECK(std::filesystem::exists(elsewhere / "kept"));
  CHECK(std::distance(std::filesystem::directory_iterator(logs.parent),
                      std::filesystem::directory_iterator()) == 6);
  CHECK(remove_old_logs(logs.directory.path / "not-there", 0) == 0);
}

TEST_CASE("a log folder that cannot be made is said so", "[node][log]") {
  Logs logs;
  std::filesystem::create_directories(logs.parent);
  std::ofstream(logs.parent / "file") << "";
  LogFolder folder;
  const auto path = logs.parent / "file" / "below";
  CHECK_THAT(folder.open(path), Catch::Contains(path.string()));
}

}  // namespace
}  // namespace troupe::node
