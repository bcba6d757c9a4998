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

#include "support/scratch.hpp"

using troupe::testing::Scratch;
using troupe::train::latest_checkpoint;
using troupe::train::PendingCheckpoint;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

std::string read(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a checkpoint appears under its number when it is committed", "[train][checkpoint]") {
  const Scratch storage;
  for (const auto* expected : {"checkpoint_000000", "checkpoint_000001"}) {
    PendingCheckpoint pending(storage.path());
    write(pending.file("model0.pt"), expected);
    CHECK(latest_checkpoint(storage.path()).filename() != expected);
    CHECK(pending.commit().filename() == expected);
    CHECK(read(latest_checkpoint(storage.path()) / "model0.pt") == expected);
  }
  CHECK(entries(storage.path()) == 2);
}

TEST_CASE(
    "a writer killed before the commit leaves the checkpoint before it, and the next one cleans up",
    "[train][checkpoint]") {
  const Scratch storage;
  {
    PendingCheckpoint good(storage.path());
    write(good.file("model0.pt"), "good");
    good.commit();
  }
  const auto child = ::fork();
  if (child == 0) {
    PendingCheckpoint half(storage.path());
    write(half.file("model0.pt"), "ha");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(entries(storage.path()) == 2);
  CHECK(read(latest_checkpoint(storage.path()) / "model0.pt") == "good");

  fs::create_directory(storage.path() / "checkpoint_000000.tmp");  // of one more such writer
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
    write(pending.file("model0.pt"), "never mind");
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
