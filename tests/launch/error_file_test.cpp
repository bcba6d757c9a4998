#include "host/error_file.hpp"

#include <fstream>

#include <catch2/catch.hpp>

#include "support/child.hpp"

using namespace troupe::launch;

TEST_CASE("the file that PyTorch's record writes holds the traceback", "[launch]") {
  CHECK(traceback_in(R"({"message": {"message": "ValueError: no", "extraInfo": {"py_callstack":
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no\n",
        "timestamp": "1700000000"}}})") ==
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no");
  CHECK(traceback_in(R"({"message": {"message": "RuntimeError: x", "extraInfo": {}}})") ==
        "RuntimeError: x");
  CHECK(traceback_in(R"({"message": {"message": "RuntimeError: x"}})") == "RuntimeError: x");
  CHECK(traceback_in(R"({"message": "in one text"})") == "in one text");
}

TEST_CASE("what is no such file tells nothing", "[launch]") {
  for (const auto* text :
       {"", "{", "[]", "3", "null", "{}", R"({"message": 3})", R"({"message": {"message": 3}})",
        R"({"message": {"extraInfo": 3}})", R"({"message": {"extraInfo": {"py_callstack": []}}})",
        "{\"message\": \"\xff\"}"}) {
    CAPTURE(text);
    CHECK(traceback_in(text).empty());
  }
  CHECK(traceback_in(std::string(1'000'000, '[')).empty());
  CHECK(traceback_of("/no/such/file").empty());
  CHECK(traceback_of("/proc").empty());
}

TEST_CASE("of a long traceback the end is kept, and a file that is too large is not read",
          "[launch]") {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "line " + std::to_string(i) + "\\n";
  const auto end = traceback_in("{\"message\": \"" + lines + "\"}");
  CHECK(end.size() <= 64 << 10);
  CHECK(end.size() > 60 << 10);
  CHECK_THAT(end, Catch::StartsWith("line ") && Catch::EndsWith("line 19999"));

  const troupe::test::TemporaryFolder folder;
  const auto file = folder.path() + "/error.json";
  std::ofstream(file) << "{\"message\": \"short\"}";
  CHECK(traceback_of(file) == "short");
  std::ofstream(file, std::ios::app) << std::string(5 << 20, ' ');
  CHECK(traceback_of(file).empty());
}
