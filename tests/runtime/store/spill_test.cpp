#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "files.hpp"
#include "namespaces.hpp"
#include "store/memory/spill.hpp"

using namespace troupe::store;
using namespace troupe::store::test;

namespace {

constexpr ObjectId kObject{7_process, 42};

SpillDirectory open_spill(const std::string& parent, std::uint64_t cap = 1024 * kMiB) {
  auto opened = SpillDirectory::open(parent, cap);
  if (const auto* refusal = std::get_if<Refusal>(&opened)) FAIL(refusal->message);
  return std::move(std::get<SpillDirectory>(opened));
}
std::vector<std::byte> bytes_of(std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
  return bytes;
}

}  // namespace

TEST_CASE("what was written to the disk is read back", "[store][spill]") {
  const TemporaryDirectory parent;
  const auto size =
      GENERATE(std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{5000}, 20 * kMiB + 1);
  const auto bytes = bytes_of(size);
  auto spill = open_spill(parent.path);

  REQUIRE_FALSE(spill.write(kObject, bytes));
  CHECK(spill.used_bytes() == size);
  std::vector<std::byte> back(size);
  REQUIRE_FALSE(spill.read(kObject, back));
  CHECK(back == bytes);

  spill.remove(kObject);
  CHECK(spill.used_bytes() == 0);
  CHECK(entries_of(spill.path()).empty());
}

TEST_CASE("a copy that was changed or cut is not taken for the object", "[store][spill]") {
  const TemporaryDirectory parent;
  auto spill = open_spill(parent.path);
  REQUIRE_FALSE(spill.write(kObject, bytes_of(10'000)));
  const auto file = spill.path() + "/7.42";
  std::vector<std::byte> back(10'000);

  SECTION("changed") {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(5000).put('!');
    const auto refusal = spill.read(kObject, back);
    REQUIRE(refusal);
    CHECK(refusal->kind == Refusal::Kind::Damaged);
    CHECK_THAT(refusal->message,
               Catch::Contains("object 7.42 (9.8 KiB)") && Catch::Contains("was changed"));
  }
  SECTION("cut") {
    std::filesystem::resize_file(file, 100);
    CHECK(spill.read(kObject, back)->kind == Refusal::Kind::Damaged);
  }
  SECTION("removed") {
    std::filesystem::remove(file);
    CHECK_THAT(spill.read(kObject, back)->message, Catch::Contains("No such file"));
  }
}

TEST_CASE("a full disk is named with its numbers, and nothing half written stays",
          "[store][spill]") {
  const TinyDisk disk("/mnt", 4 * kMiB);
  if (!disk.why_not().empty()) {
    WARN("skipped: " << disk.why_not());
    return;
  }
  auto spill = open_spill(disk.path());
  REQUIRE_FALSE(spill.write({1_process, 1}, bytes_of(3 * kMiB)));

  const auto refusal = spill.write(kObject, bytes_of(3 * kMiB));

  REQUIRE(refusal);
  CHECK(refusal->kind == Refusal::Kind::DiskFull);
  CHECK_THAT(refusal->message, Catch::Contains("object 7.42 (3.0 MiB)") &&
                                   Catch::Contains("No space left") &&
                                   Catch::Contains("1.0 MiB free of 4.0 MiB"));
  CHECK(entries_of(spill.path()) == std::vector<std::string>{"1.1"});
  CHECK(spill.used_bytes() == 3 * kMiB);
}

TEST_CASE("no more of the disk is used than was allowed", "[store][spill]") {
  const TemporaryDirectory parent;
  auto spill = open_spill(parent.path, 3 * kMiB);
  REQUIRE_FALSE(spill.write({1_process, 1}, bytes_of(2 * kMiB)));
  CHECK_THAT(spill.write(kObject, bytes_of(2 * kMiB))->message,
             Catch::Contains("2.0 MiB of the 3.0 MiB"));
  spill.remove({1_process, 1});
  CHECK_FALSE(spill.write(kObject, bytes_of(2 * kMiB)));
}

TEST_CASE("a node cleans up after itself, and after one that could not", "[store][spill]") {
  const TemporaryDirectory parent;
  auto living = open_spill(parent.path);
  const auto dies = [&] {
    auto spill = open_spill(parent.path);
    if (spill.write(kObject, bytes_of(1000))) return false;
    ::_exit(0);  // without its destructor
  };
  REQUIRE(in_fork(dies));
  CHECK(entries_of(parent.path).size() == 2);
  {
    const auto next = open_spill(parent.path);
    CHECK(entries_of(parent.path).size() == 2);  // the living one's and its own
    CHECK(std::filesystem::exists(living.path()));
  }
  CHECK(entries_of(parent.path).size() == 1);
}

TEST_CASE("a spill directory that cannot be made is refused with the reason", "[store][spill]") {
  const auto opened = SpillDirectory::open("/proc/nowhere", kMiB);
  REQUIRE(std::holds_alternative<Refusal>(opened));
  CHECK_THAT(std::get<Refusal>(opened).message, Catch::Contains("/proc/nowhere"));
}
