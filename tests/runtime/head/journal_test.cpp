#include "head/journal.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <catch2/catch.hpp>
#include <csignal>

#include <troupe/errors.hpp>

using troupe::head::Journal;

namespace {

struct Folder {
  std::string path = make();
  ~Folder() { std::filesystem::remove_all(path); }

  static std::string make() {
    char name[] = "/tmp/troupe-journal-XXXXXX";
    return ::mkdtemp(name);
  }
};

/// As on a full disk: no file of this process may grow beyond it.
class NoRoomBeyond {
 public:
  explicit NoRoomBeyond(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~NoRoomBeyond() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

int events_in(const std::string& folder) {
  sqlite3* database = nullptr;
  sqlite3_stmt* count = nullptr;
  REQUIRE(sqlite3_open((folder + "/cluster.db").c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_prepare_v2(database, "SELECT count(*) FROM event", -1, &count, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(count) == SQLITE_ROW);
  const int number = sqlite3_column_int(count, 0);
  sqlite3_finalize(count);
  sqlite3_close(database);
  return number;
}

}  // namespace

TEST_CASE("a journal keeps its cluster, counts its heads and has what was committed", "[head][journal]") {
  Folder folder;
  std::string cluster;
  for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
    const auto journal = Journal::open(folder.path, [](const std::string& line) { FAIL(line); });
    if (epoch == 1) cluster = journal->cluster();
    CHECK(journal->cluster() == cluster);
    CHECK(journal->epoch() == epoch);
    journal->append(1, "job started", 7, "{}");
    journal->commit();
    CHECK(events_in(folder.path) == static_cast<int>(epoch));
  }
}

TEST_CASE("a second head on a journal is refused", "[head][journal][refusal]") {
  Folder folder;
  const auto first = Journal::open(folder.path, [](const std::string&) {});
  CHECK_THROWS_WITH(Journal::open(folder.path, [](const std::string&) {}),
                    Catch::Contains("another head uses " + folder.path) && Catch::Contains("--state-dir"));
}

TEST_CASE("a journal without room warns once, and again when it is written again", "[head][journal][failure]") {
  Folder folder;
  std::vector<std::string> warnings;
  const auto journal = Journal::open(folder.path, [&](const std::string& line) { warnings.push_back(line); });
  const std::string detail(2'000, 'x');
  const auto happens = [&] {
    journal->append(1, "job started", 7, detail);
    journal->commit();
  };
  happens();
  {
    const NoRoomBeyond limit(40'000);
    for (int i = 0; i < 100; ++i) happens();
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains(folder.path + "/cluster.db") && Catch::Contains("the cluster goes on"));
  const int before = events_in(folder.path);
  CHECK(before < 100);
  happens();
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[1], Catch::Contains("is written again"));
  CHECK(events_in(folder.path) == before + 1);
}
