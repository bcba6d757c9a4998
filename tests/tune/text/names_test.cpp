#include "text/names.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "rounds.hpp"
#include "text/json.hpp"
#include "text/json_line.hpp"

namespace names_test {

using namespace troupe;
using namespace troupe::tune;

TEST_CASE("a name that is UTF-8 is written as it is", "[tune][names]") {
  for (const auto* name :
       {"", "loss", "time, s", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xad", "100%FF", "\xef\xbf\xbd",
        "\xef\xbf\xbd"
        "f0"}) {
    CHECK(name_in_utf8(name) == name);
    CHECK(name_from_utf8(name) == name);
  }
}

TEST_CASE("a byte that no character of UTF-8 has is written by its number", "[tune][names]") {
  const std::string mark = "\xef\xbf\xbd";
  CHECK(name_in_utf8("a\xff") == "a" + mark + "FF");
  CHECK(name_in_utf8("\xe2\x82") == mark + "E2" + mark + "82");  // an end is missing
  CHECK(name_in_utf8("\xc0\x80") == mark + "C0" + mark + "80");  // a longer form of NUL
  CHECK(name_in_utf8("\xed\xa0\x80") == mark + "ED" + mark + "A0" + mark + "80");  // a surrogate
  CHECK(name_in_utf8(mark + "FF") == mark + "EF" + mark + "BF" + mark + "BDFF");
}

TEST_CASE("names that differ are texts that differ, which JSON takes and gives back",
          "[tune][names]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string_view bytes("aF0\xef\xbf\xbd\xc3\xa4\xff\0", 11);
  std::set<std::string> names, texts;
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (auto size = random() % 9; size > 0; --size) name += bytes[random() % bytes.size()];
    const auto text = name_in_utf8(name);
    names.insert(name);
    texts.insert(text);
    REQUIRE(name_from_utf8(text) == name);
    REQUIRE_NOTHROW(Json(text).dump());  // which throws for what is not UTF-8
  }
  CHECK(names.size() == texts.size());
}

TEST_CASE("two metrics stay two in JSON, whatever bytes their names have", "[tune][names]") {
  Metrics metrics{{"a\xfe", 1}, {"a\xff", 2}};
  metrics.emplace_back("", 3).name = std::string("a\0b", 3);
  metrics.emplace_back("", 4).name = std::string("a\0c", 3);
  const auto line = JsonLine().add("metrics", metrics).end();
  CHECK(line == dump({{"metrics", to_json(metrics)}}));
  const auto back = metrics_from(parse(line, "a line").at("metrics"));
  REQUIRE(back.size() == metrics.size());
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    CHECK(back[i].name == metrics[i].name);
    CHECK(back[i].value == metrics[i].value);
  }
}

}  // namespace names_test
