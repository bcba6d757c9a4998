#include "experiment/journal_lines.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace journal_lines_test {

using namespace troupe::tune;
using Strings = std::vector<std::string>;

namespace {

constexpr auto* kHeader = R"({"journal":6,"seed":1})";

Strings lines_after(std::uint64_t events) {
  Strings lines{numbered_line(kHeader, events)};
  for (int i = 0; i < 5; ++i)
    lines.push_back(
        numbered_line(R"({"event":"started","trial":)" + std::to_string(i) + "}", ++events));
  return lines;
}

std::string text_of(const Strings& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

std::string damage_in(const Strings& lines) {
  try {
    for_lines(text_of(lines), {});
  } catch (const DamagedLine& damaged) {
    return std::to_string(damaged.number()) + ": " + damaged.text();
  }
  return "none";
}

}  // namespace

TEST_CASE("whole lines are told of in their order, and the rest is left out", "[tune][journal]") {
  const std::uint64_t events = GENERATE(0, 17);
  const auto lines = lines_after(events);
  const auto whole = text_of(lines);
  Strings told;
  const auto see = [&](std::string_view line, std::size_t number) {
    told.emplace_back(line);
    CHECK(number == told.size());
  };
  const std::string half = GENERATE("", "{\"event\":\"st", "garbage");
  CHECK(for_lines(whole + half, see) == whole.size());
  CHECK(told == lines);
  CHECK(events_before(whole) == events);
  CHECK(dump(first_line_of(whole)) == kHeader);
  CHECK(for_lines("", see) == 0);
  CHECK(for_lines(half, {}) == 0);
}

TEST_CASE("each line that is altered, missing, doubled or exchanged is found, and said",
          "[tune][journal]") {
  const auto lines = lines_after(GENERATE(0, 17));
  REQUIRE(damage_in(lines) == "none");
  for (std::size_t at = 0; at < lines.size(); ++at) {
    CAPTURE(at);
    const auto place = std::to_string(at + 1) + ": ";
    const auto after = std::to_string(at + 2) + ": ";
    for (std::size_t byte = 0; byte < lines[at].size(); ++byte) {
      auto altered = lines;
      altered[at][byte] = altered[at][byte] == '7' ? '8' : '7';
      REQUIRE_THAT(damage_in(altered), Catch::StartsWith(place));
    }
    auto replaced = lines;
    replaced[at] = "{}";
    CHECK_THAT(damage_in(replaced), Catch::StartsWith(place + "it has no number and no checksum"));
    auto doubled = lines;
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
    CHECK_THAT(damage_in(doubled), Catch::StartsWith(after + "it has the number ") &&
                                       Catch::Contains("it stands there twice"));
    if (at + 1 == lines.size()) break;
    auto missing = lines;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK_THAT(damage_in(missing), Catch::StartsWith(place));
    auto joined = lines;
    joined[at] += joined[at + 1];
    joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    CHECK_THAT(damage_in(joined), Catch::StartsWith(place));
    for (std::size_t other = at + 1; other < lines.size(); ++other) {
      auto exchanged = lines;
      std::swap(exchanged[at], exchanged[other]);
      CHECK_THAT(damage_in(exchanged), Catch::StartsWith(place));
    }
  }
}

TEST_CASE("a line of a journal says what is wrong with it in words", "[tune][journal]") {
  auto lines = lines_after(3);
  lines.erase(lines.begin() + 2);
  CHECK_THAT(damage_in(lines), Catch::StartsWith("3: it has the number 6 where 5 is due: lines are "
                                                 "missing before it, or lines were exchanged"));
  lines = lines_after(3);
  lines[2][4] = 'E';
  CHECK_THAT(damage_in(lines),
             Catch::StartsWith("3: its checksum is not that of its text, which was "
                               "altered: \"{\\\"evEnt"));
  lines.erase(lines.begin());
  CHECK_THAT(damage_in(lines), Catch::StartsWith("1: it is not the first line of a journal"));
}

TEST_CASE("a journal of another version is refused as such, and not as a damaged one",
          "[tune][journal]") {
  const auto [version, why] = GENERATE(table<int, std::string>(
      {{5, "written by an older Troupe: its version is 5, this one reads 6"},
       {7, "written by a newer Troupe: its version is 7, this one reads 6"}}));
  const auto header = R"({"journal":)" + std::to_string(version) + "}";
  // Versions before 5 wrote neither numbers nor checksums.
  for (const auto& line : {header, numbered_line(header, 0)}) {
    const auto journal = line + "\n{\"event\":\"started\"}\n";
    CHECK_THROWS_AS(for_lines(journal, {}), OtherVersion);
    CHECK_THROWS_WITH(first_line_of(journal), Catch::Contains(why));
  }
}

}  // namespace journal_lines_test
