#include "sweep/report_line.hpp"

#include <cmath>

#include <catch2/catch.hpp>

using namespace troupe::launch;

namespace {

double value_of(const ReportLine& report, const std::string& name) {
  for (const auto& metric : report.metrics) {
    if (metric.name == name) return metric.value;
  }
  FAIL("no metric " << name);
  return 0;
}

}  // namespace

TEST_CASE("a line that begins with troupe: is a report", "[sweep]") {
  const ReportReader reader;
  const auto report =
      reader.read(R"(troupe: {"loss": 0.25, "step": 3, "ok": true, "checkpoint": "a/b"})").report;
  REQUIRE(report);
  CHECK(value_of(*report, "loss") == 0.25);
  CHECK(value_of(*report, "step") == 3);
  CHECK(value_of(*report, "ok") == 1);
  CHECK(report->checkpoint == "a/b");
  CHECK_FALSE(reader.read("epoch 3: loss 0.25").report);
  CHECK_FALSE(reader.read("").report);
  CHECK(reader.read("10%\r50%\rtroupe: {\"loss\": 1}\r\n").report);  // behind a progress bar
}

TEST_CASE("numbers that Python prints and JSON has not are read", "[sweep]") {
  const ReportReader reader;
  CHECK(std::isnan(value_of(*reader.read(R"(troupe: {"loss": NaN})").report, "loss")));
  CHECK(value_of(*reader.read(R"(troupe: {"loss": -Infinity})").report, "loss") == -INFINITY);
}

TEST_CASE("a line that means to report and is none is refused", "[sweep]") {
  const ReportReader reader;
  for (const auto* line : {"troupe: 3", "troupe: {", "troupe: {}", R"(troupe: {"loss": "low"})",
                           R"(troupe: {"loss": [1]})", R"(troupe: {"checkpoint": "a"})"}) {
    CAPTURE(line);
    CHECK_THROWS_WITH(reader.read(line), Catch::Contains("is no report"));
  }
}

TEST_CASE("named groups of a regular expression are metrics", "[sweep]") {
  const ReportReader reader(
      R"(epoch (?<step>\d+).*loss[ =](?<loss>[-+0-9.einfa]+)(, acc (?<acc>\S+))?)");
  const auto report = reader.read("[10:00] epoch 3/10 loss=1.5e-2, acc 0.9").report;
  REQUIRE(report);
  CHECK(value_of(*report, "step") == 3);
  CHECK(value_of(*report, "loss") == 0.015);
  CHECK(value_of(*report, "acc") == 0.9);
  CHECK(reader.read("epoch 4 loss nan").report->metrics.size() == 2);
  CHECK_FALSE(reader.read("loss=3").report);
  CHECK(reader.read("troupe: {\"loss\": 2}").report);  // still
}

TEST_CASE("a named group that finds text beside the number is told of by its name", "[sweep]") {
  const ReportReader reader(R"(loss=(?<loss>\S+) acc=(?<acc>\S+))");
  const auto found = reader.read("epoch 1: loss=0.1, acc=0.9");
  REQUIRE(found.report);
  CHECK(found.report->metrics.size() == 1);
  CHECK(found.notice ==
        "group 'loss' of [reports] pattern found text that is no number, which was passed over: "
        "write "
        "(?<loss>[0-9.e+-]+), which ends where the number does");
}

TEST_CASE("a pattern that finds nothing to report is refused", "[sweep]") {
  CHECK_THROWS_WITH(ReportReader("loss=(.*"), Catch::Contains("is no regular expression"));
  CHECK_THROWS_WITH(ReportReader("loss=(.*)"), Catch::Contains("names no metric"));
}

TEST_CASE("a report is found behind what a program left unfinished in its line", "[sweep]") {
  const ReportReader reader("loss=(?<loss>[0-9.]+)");
  const auto report = reader.read(R"(epoch 3 ...troupe: {"loss": 0.5, "step": 3})").report;
  REQUIRE(report);
  CHECK(value_of(*report, "loss") == 0.5);
  CHECK(value_of(*reader.read("50%|## |\rsaving... troupe: {\"loss\": NaN}\r\n").report, "loss") !=
        0.5);
  // What looks like one, and does not begin the line, may be anything.
  CHECK_FALSE(reader.read("+ echo 'troupe: {\"loss\": 1}'").report);
  CHECK_FALSE(reader.read("print troupe: first").report);
  CHECK(value_of(*reader.read("troupe loss=4, not troupe: {}").report, "loss") == 4);
}

TEST_CASE("a line of megabytes is searched in part, and that is told", "[sweep]") {
  const ReportReader reader("loss=(?<loss>[0-9.]+)");
  const std::string much(std::size_t{4} << 20, 'x');
  const auto found = reader.read("loss=1 " + much);
  REQUIRE(found.report);
  CHECK(value_of(*found.report, "loss") == 1);
  CHECK_THAT(found.notice, Catch::Contains("a line is longer than 16 KiB"));
  CHECK_FALSE(reader.read(much + " loss=1").report);
  CHECK(reader.read("loss=1").notice.empty());
  CHECK(reader.read(much + "\rloss=1").notice.empty());
  CHECK(ReportReader().read(much).notice.empty());
  CHECK(reader.read(much + "troupe: {\"loss\": 1}").report);
  CHECK_THROWS_WITH(reader.read("troupe: " + std::string(std::size_t{1} << 20, '[')),
                    Catch::Contains("it is no JSON"));
}

TEST_CASE("a line that a pattern would be searched for without end is passed over", "[sweep]") {
  const ReportReader reader("(a|aa|a*)*b(?<loss>[0-9]+)");
  const auto found = reader.read(std::string(1000, 'a'));
  CHECK_FALSE(found.report);
  CHECK_THAT(found.notice, Catch::Contains("[reports] pattern"));
  CHECK(value_of(*reader.read("aab7").report, "loss") == 7);
}
