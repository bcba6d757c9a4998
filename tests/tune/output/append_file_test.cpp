#include "output/append_file.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "output/csv.hpp"
#include "small_disk.hpp"
#include "support/temporary_folder.hpp"

namespace append_file_test {

using namespace troupe::tune;
using namespace troupe::test;
namespace fs = std::filesystem;

TEST_CASE("what a full disk does not take follows in order when there is room", "[tune][files]") {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.is_there()) return;
  AppendFile file(disk.path() / "lines");
  std::string all;
  const auto append = [&](int number) {
    const auto line = "line " + std::to_string(number) + "\n";
    all += line;
    file.append(line);
  };
  append(0);
  CHECK(file.trouble() == "");
  fill(disk.path());
  for (int number = 1; number < 2000; ++number) append(number);
  CHECK(file.trouble() ==
        "cannot write " + (disk.path() / "lines").string() + ": No space left on device");
  CHECK_FALSE(file.flush());
  make_room(disk.path());
  append(2000);
  CHECK(file.flush());
  CHECK(file.trouble() == "");
  CHECK(content_of(disk.path() / "lines") == all);
}

TEST_CASE("a file larger than what is kept in memory is written and replaced whole",
          "[tune][files]") {
  const TemporaryFolder folder;
  const std::string content(AppendFile::kMostKept + 1, 'c');
  replace_file(folder.path() / "large", content);
  CHECK(fs::file_size(folder.path() / "large") == content.size());
  AppendFile file(folder.path() / "large");
  file.append(content);
  CHECK(file.flush());
  CHECK(fs::file_size(folder.path() / "large") == 2 * content.size());
}

TEST_CASE("a file whose waiting lines were too many ends there, and says so", "[tune][files]") {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.is_there()) return;
  AppendFile file(disk.path() / "lines");
  fill(disk.path());
  file.append("first\n");
  file.append(std::string(AppendFile::kMostKept, 'x'));
  make_room(disk.path());
  file.append("last\n");
  CHECK_FALSE(file.flush());
  CHECK(content_of(disk.path() / "lines") == "first\n");
  CHECK(file.trouble() ==
        (disk.path() / "lines").string() +
            " ends early: 64 MiB waited for room on the disk, and what came after is lost");
}

TEST_CASE("a table that cannot grow to the right keeps its records until it can", "[tune][files]") {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.is_there()) return;
  CsvFile table(disk.path() / "table.csv", {"a"});
  table.append({{"a", "1"}});
  fill(disk.path());
  table.append({{"a", "2"}, {"b", "two"}});
  table.append({{"a", "3"}});
  CHECK_FALSE(table.flush());
  CHECK(table.trouble().find("No space left on device") != std::string::npos);
  make_room(disk.path());
  CHECK(table.flush());
  CHECK(content_of(disk.path() / "table.csv") == "a,b\n1,\n2,two\n3,\n");
}

TEST_CASE("a file that is to be replaced stays as it was where there is no room", "[tune][files]") {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.is_there()) return;
  replace_file(disk.path() / "summary", "old");
  fill(disk.path());
  CHECK_THROWS_WITH(replace_file(disk.path() / "summary", std::string(4096, 'n')),
                    Catch::Contains("cannot write ") && Catch::Contains("No space left on device"));
  CHECK(content_of(disk.path() / "summary") == "old");
  CHECK_FALSE(fs::exists(disk.path() / "summary.new"));
}

}  // namespace append_file_test
