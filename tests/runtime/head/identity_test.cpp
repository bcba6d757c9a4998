#include "head/identity.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <sqlite3.h>
#include <stdlib.h>
#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "peer.hpp"

using namespace troupe;
using namespace troupe::head::test;
using troupe::head::Identity;
namespace fs = std::filesystem;

namespace {

struct Folder {
  std::string path = make();
  ~Folder() { fs::remove_all(path); }

  static std::string make() {
    char name[] = "/tmp/troupe-identity-XXXXXX";
    return ::mkdtemp(name);
  }
};

/// A database as heads wrote it that had a table of events.
void write_version_1(const std::string& folder) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open((folder + "/cluster.db").c_str(), &database) == SQLITE_OK);
  const char* sql =
      "PRAGMA journal_mode = WAL;CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT "
      "NULL);CREATE TABLE event (seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, kind TEXT NOT "
      "NULL,                    subject INTEGER NOT NULL, detail TEXT NOT NULL);INSERT INTO meta "
      "VALUES ('version', '1'), ('cluster', '5d3c0a8a61a9f4b2'), ('epoch', '7');INSERT INTO event "
      "VALUES (1, 1, 'job started', 1, '{}');";
  REQUIRE(sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

/// What is in the folder, by name: how large it is and when it was last written.
std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files_of(
    const std::string& folder) {
  std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files;
  for (const auto& file : fs::directory_iterator(folder)) {
    files[file.path().filename()] = {file.file_size(), file.last_write_time()};
  }
  return files;
}

/// The files in the folder that this process has open.
std::set<std::string> open_files_in(const std::string& folder) {
  std::set<std::string> open;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of this very walk
    const auto file = fs::read_symlink(entry.path(), gone);
    if (!gone && file.parent_path() == folder) open.insert(file.filename());
  }
  return open;
}

}  // namespace

TEST_CASE("a cluster keeps its identity, and counts its heads", "[head][identity]") {
  Folder folder;
  std::string cluster;
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    const Identity identity(folder.path);
    if (epoch == 1) cluster = identity.cluster();
    CHECK(identity.cluster() == cluster);
    CHECK(identity.epoch() == epoch);
  }
  CHECK(cluster.size() == 16);
}

TEST_CASE("a cluster of a version that recorded events keeps its identity", "[head][identity]") {
  Folder folder;
  write_version_1(folder.path);
  const Identity identity(folder.path);
  CHECK(identity.cluster() == "5d3c0a8a61a9f4b2");
  CHECK(identity.epoch() == 8);
}

TEST_CASE("without a directory each head is a cluster of its own", "[head][identity]") {
  const Identity one("");
  const Identity other("");
  CHECK(one.cluster() != other.cluster());
  CHECK(one.epoch() == 1);
}

TEST_CASE("a second head of a cluster is refused", "[head][identity][refusal]") {
  Folder folder;
  const Identity first(folder.path);
  CHECK_THROWS_WITH(Identity(folder.path), Catch::Contains("another head uses " + folder.path) &&
                                               Catch::Contains("--state-dir"));
}

TEST_CASE("a directory that cannot be had is refused, and its lock given back",
          "[head][identity][refusal]") {
  Folder folder;
  fs::create_directory(folder.path + "/cluster.db");
  CHECK_THROWS_WITH(Identity(folder.path), Catch::Contains(folder.path + "/cluster.db"));
  fs::remove(folder.path + "/cluster.db");
  CHECK(Identity(folder.path).epoch() == 1);
}

TEST_CASE("a head that serves writes no file, and has none open to write", "[head][identity]") {
  Folder folder;
  Scene scene(folder.path);
  const auto before = files_of(folder.path);
  Peer administrator(scene, wire::Role::ADMIN);
  for (int i = 0; i < 20; ++i) {
    Peer node(scene, wire::Role::NODE);
    node.join([](auto) {});
    Peer driver(scene, wire::Role::DRIVER);
    driver.register_job("job");
  }
  REQUIRE(scene.run_until([&] {
    const auto status = administrator.status();
    return status["jobs"].empty() && status["nodes"].empty();
  }));
  CHECK(files_of(folder.path) == before);
  CHECK(open_files_in(folder.path) == std::set<std::string>{"lock"});
}
