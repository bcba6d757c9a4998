#include "output/csv.hpp"

#include <fstream>

#include <catch2/catch.hpp>

#include "python.hpp"
#include "support/temporary_folder.hpp"

namespace csv_test {

using namespace troupe::tune;

TEST_CASE("a field is quoted where a reader would take it for something else", "[tune][csv]") {
  CHECK(csv_record({"a", "1.5", ""}) == "a,1.5,\n");
  CHECK(csv_record({"a,b", "say \"so\"", "two\nlines"}) ==
        "\"a,b\",\"say \"\"so\"\"\",\"two\nlines\"\n");
  CHECK(csv_record({"", "a"}) == ",a\n");
}

TEST_CASE("a wider table keeps its records, also those on two lines", "[tune][csv]") {
  CHECK(widened_csv("a,b\n1,2\n\"x\ny\",\"\"\"\n\"\n", {"a", "b", "c", "d"}, 2) ==
        "a,b,c,d\n1,2,,\n\"x\ny\",\"\"\"\n\",,\n");
}

TEST_CASE("Python reads back what was written, columns that came late included", "[tune][csv]") {
  TemporaryFolder folder;
  CsvFile file(folder.path() / "t.csv", {"trial", "reason"});
  file.append({{"trial", "0"}, {"reason", "plain"}});
  file.append({{"trial", "1"}, {"reason", "a, \"b\"\nc"}, {"loss", "0.5"}});
  file.append({{"trial", "2"}, {"loss", "nan"}, {"acc, top-1", "1"}});
  file.append({{"reason", "no trial"}});
  CHECK(file.flush());

  const auto said = troupe::test::python(folder.path(), R"(
import csv, json
print(json.dumps(list(csv.DictReader(open('t.csv', newline='')))))
)");

  CHECK(said == R"([{"trial": "0", "reason": "plain", "loss": "", "acc, top-1": ""}, )"
                R"({"trial": "1", "reason": "a, \"b\"\nc", "loss": "0.5", "acc, top-1": ""}, )"
                R"({"trial": "2", "reason": "", "loss": "nan", "acc, top-1": "1"}, )"
                R"({"trial": "", "reason": "no trial", "loss": "", "acc, top-1": ""}])"
                "\n");
}

TEST_CASE("what was appended is in the file before append returns", "[tune][csv]") {
  TemporaryFolder folder;
  AppendFile file(folder.path() / "lines");
  file.append("one\n");
  CHECK(content_of(folder.path() / "lines") == "one\n");
  file.append("two\n");
  CHECK(content_of(folder.path() / "lines") == "one\ntwo\n");
}

TEST_CASE("a file that cannot be written is named, with the cause", "[tune][csv]") {
  TemporaryFolder folder;
  const auto path = folder.path() / "missing" / "file";
  CHECK_THROWS_WITH(AppendFile(path),
                    "cannot write " + path.string() + ": No such file or directory");
  AppendFile full("/dev/full");
  full.append("x");
  CHECK(full.trouble() == "cannot write /dev/full: No space left on device");
  CHECK(full.kept() == "x");
}

TEST_CASE("a table goes on after some of its records, with all of its columns", "[tune][csv]") {
  TemporaryFolder folder;
  const auto path = folder.path() / "t.csv";
  {
    CsvFile file(path, {"trial", "reason"});
    file.append({{"trial", "0"}, {"reason", "a, \"b\"\nc"}});
    file.append({{"trial", "1"}, {"the \"loss\"", "0.5"}});
    file.append({{"trial", "2"}});
    CHECK(file.rows() == 3);
  }
  const auto whole = content_of(path);
  {
    auto file = CsvFile::go_on(path, {"trial", "reason"}, 2);
    CHECK(file.rows() == 2);
    file.append({{"trial", "2"}});
  }
  CHECK(content_of(path) == whole);
  CHECK(CsvFile::go_on(path, {"trial", "reason"}, 9).rows() == 3);

  std::ofstream(path) << "trial,rea";  // the begin of a header, and nothing else
  CHECK(CsvFile::go_on(path, {"trial"}, 2).rows() == 0);
  CHECK(content_of(path) == "trial\n");
}

TEST_CASE("a file is cut after its last whole line within so many bytes", "[tune][csv]") {
  TemporaryFolder folder;
  const auto path = folder.path() / "lines";
  std::ofstream(path) << "one\ntwo\nthree\n";
  CHECK_FALSE(cut_file(path, 20));  // it has fewer, and all of them stay
  CHECK(content_of(path) == "one\ntwo\nthree\n");
  CHECK(cut_file(path, 8));
  CHECK(content_of(path) == "one\ntwo\n");
  CHECK_FALSE(cut_file(path, 6));
  CHECK(content_of(path) == "one\n");
  CHECK_FALSE(cut_file(path, 2));
  CHECK(content_of(path).empty());
  CHECK(cut_file(folder.path() / "none", 0));
  CHECK_FALSE(cut_file(folder.path() / "none", 4));
}

}  // namespace csv_test
