#include "node/log_tail.hpp"

#include <catch2/catch.hpp>

#include "waiting.hpp"

namespace troupe::node {
namespace {

struct Log {
  test::TemporaryDirectory directory;
  std::string file = directory.path / "process.log";
  void write(const std::string& text) const {
    std::ofstream(file, std::ios::app | std::ios::binary) << text;
  }
};

TEST_CASE("the end of a log is its last ten lines, in one", "[node][log]") {
  Log log;
  const LogTail tail(log.file);
  for (int i = 1; i <= 11; ++i) log.write(std::to_string(i) + "\n");
  log.write("\n  \r\nlast");
  CHECK(tail.quote() ==
        "; its log, " + log.file + ", ends with: '3 / 4 / 5 / 6 / 7 / 8 / 9 / 10 / 11 / last'");
  CHECK(tail.name() == "; its log is " + log.file);
}

TEST_CASE("what was in a log before its process is not the process's", "[node][log]") {
  Log log;
  log.write("an earlier one\n");
  const LogTail tail(log.file);
  CHECK(tail.quote() == "; its log is " + log.file);
  log.write("its own\n");
  CHECK(tail.quote() == "; its log, " + log.file + ", ends with: 'its own'");
}

TEST_CASE("the end of a log fits into a message, whatever was written", "[node][log]") {
  Log log;
  const LogTail tail(log.file);
  log.write(std::string(100'000, 'x').append("\n\x1b[31mred\x1b[0m\n").append(100'000, '\xff'));
  const auto quote = tail.quote();
  CHECK(quote.size() < 4000);
  for (char c : quote) CHECK((c >= ' ' && c <= '~'));
}

TEST_CASE("without a log there is nothing to say of it", "[node][log]") {
  CHECK(LogTail().quote().empty());
  CHECK(LogTail("").name().empty());
  CHECK(LogTail("/not/here").quote() == "; its log is /not/here");
}

}  // namespace
}  // namespace troupe::node
