#include "config/name.hpp"

#include <random>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include "config/json.hpp"
#include "rounds.hpp"

using namespace troupe::config;

TEST_CASE("a name is 1 to 256 bytes of UTF-8 without control characters", "[config][name]") {
  for (const std::string name :
       {"w1", "two words", "Größe", "\xe6\x9c\xba", "\xf0\x9f\x90\x8e", "a/b=c"}) {
    INFO(name);
    CHECK(why_no_name(name).empty());
  }
  CHECK(why_no_name(std::string(256, 'x')).empty());
  CHECK_THAT(why_no_name(std::string(257, 'x')),
             Catch::Contains("it has 257 bytes; give 1 to 256 bytes of UTF-8"));
  CHECK_THAT(why_no_name(""), Catch::StartsWith("it is empty"));
  for (const std::string name :
       {"\xff", "pr\xe9g", "cut \xe6\x9c", "\xc0\xaf", "\xed\xa0\x80", "\x80"}) {
    CHECK_THAT(why_no_name(name), Catch::StartsWith("it is not UTF-8; give"));
  }
  for (const auto& name :
       {std::string("a\nb"), std::string("\x1b[31m"), std::string("\x7f"), std::string("a\0b", 3),
        std::string("\xc2\x9b"), std::string("\xe6\x9c\xba\t")}) {
    CHECK_THAT(why_no_name(name), Catch::StartsWith("it has a control character; give"));
  }
}

TEST_CASE("what cannot be a name is refused with its field, its beginning and what to give",
          "[config][name]") {
  CHECK_NOTHROW(check_name("--name", "w1"));
  CHECK_THROWS_WITH(check_name("Options::name", "bad\xff"),
                    "Options::name 'bad\xef\xbf\xbd': it is not UTF-8; give 1 to 256 bytes of "
                    "UTF-8 without control characters");
  CHECK(why_no_name("--name", std::string(1'000'000, 'x')).size() < 250);
}

TEST_CASE("what is no name is made one by replacing and cutting, and a name stays as it is",
          "[config][name]") {
  CHECK(printable("Größe") == "Größe");
  CHECK(printable(std::string(256, 'x')) == std::string(256, 'x'));
  CHECK(printable("pr\xe9g") == "pr\xef\xbf\xbdg");
  CHECK(printable("a\nb\xc2\x9b") ==
        "a\xef\xbf\xbd"
        "b\xef\xbf\xbd");
  CHECK(printable("0123456789", 9) == "012345\xe2\x80\xa6");
  CHECK(printable("").empty());
}

TEST_CASE("whatever bytes there are, what is made printable is a name, and its JSON can be read",
          "[config][name]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string interesting =
      "\n\x1b\x7f\x80\x9f\xa0\xbf\xc2\xe6\x9c\xba\xed\xf0\x90\xf4\xffxyz";
  for (int round = 0; round < 2'000; ++round) {
    std::string text(1 + random() % 600, '\0');
    for (auto& byte : text) byte = interesting[random() % interesting.size()];
    const auto name = printable(text);
    CHECK(why_no_name(name).empty());
    CHECK(printable(name) == name);
    CHECK_FALSE(nlohmann::json::parse(to_text({{"text", text}}), nullptr, false).is_discarded());
  }
}
