#include "checkpoint/directory.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "checkpoint/small_checkpoint.hpp"
#include "support/scratch.hpp"

using namespace troupe::testing;
using troupe::train::latest_checkpoint;
using troupe::train::PendingCheckpoint;
namespace fs = std::filesystem;

TEST_CASE("a checkpoint appears under its number when it is committed", "[train][checkpoint]") {
  const Scratch storage;
  for (const auto* expected : {"checkpoint_000000", "checkpoint_000001"}) {
    PendingCheckpoint pending(storage.path());
    write(pending.file("checkpoint.json"), expected);
    CHECK(latest_checkpoint(storage.path()).filename() != expected);
    CHECK(pending.commit().filename() == expected);
    CHECK(content_of(latest_checkpoint(storage.path()) / "checkpoint.json") == expected);
  }
  CHECK(entries(storage.path()) == 2);
}

TEST_CASE(
    "a writer killed before the commit leaves the checkpoint before it, and the next one cleans up",
    "[train][checkpoint]") {
  const Scratch storage;
  {
    PendingCheckpoint good(storage.path());
    write(good.file("checkpoint.json"), "good");
    good.commit();
  }
  const auto child = ::fork();
  if (child == 0) {
    PendingCheckpoint half(storage.path());
    write(half.file("checkpoint.json"), "ha");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(entries(storage.path()) == 2);
  CHECK(content_of(latest_checkpoint(storage.path()) / "checkpoint.json") == "good");

  fs::create_directory(storage.path() / "checkpoint_000000.tmp");  // of one more such writer
  {
    const PendingCheckpoint not_alone(storage.path(), false);
    CHECK(entries(storage.path()) == 4);
  }
  PendingCheckpoint next(storage.path());
  write(next.file("optimizer0.pt"), "new");
  const auto committed = next.commit();
  CHECK(committed.filename() == "checkpoint_000001");
  CHECK(entries(committed) == 1);
  CHECK(entries(storage.path()) == 2);
}

TEST_CASE("a checkpoint that is given up leaves nothing", "[train][checkpoint]") {
  const Scratch storage;
  {
    PendingCheckpoint pending(storage.path());
    write(pending.file("checkpoint.json"), "never mind");
  }
  CHECK(entries(storage.path()) == 0);
  CHECK(latest_checkpoint(storage.path()).empty());
}

TEST_CASE("a storage that cannot be made is named", "[train][checkpoint]") {
  const Scratch storage;
  write(storage.path() / "file", "");
  CHECK_THROWS_WITH(PendingCheckpoint(storage.path() / "file" / "below"),
                    Catch::Contains((storage.path() / "file" / "below").string()));
}
