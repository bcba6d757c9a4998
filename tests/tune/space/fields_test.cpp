// Configurations with a field of every kind that a program may have, searched or not.
#include <troupe/tune/simulate.hpp>

#include <climits>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>

namespace fields_test {

using namespace troupe::tune;

/// With external linkage: the names of its fields are looked up by the compiler.
template <class Number>
struct Of {
  double lr = 0.1;
  Number number{};
};

enum class Activation { Relu, Gelu };
enum Old { First, Second };

struct Optimizer {
  std::size_t warmup = 10;
  double momentum = 0.9;
};

struct Layer {
  int width = 64;
  double dropout = 0.1;
};

/// What nobody searches, beside what somebody does.
struct Whole {
  std::size_t width = 3;
  std::uint64_t seed = 1;
  Activation activation = Activation::Gelu;
  Old old = Second;
  std::filesystem::path folder = "data";
  std::optional<int> limit = {};
  std::optional<double> none = {};
  std::vector<std::size_t> layers = {1, 2};
  std::map<std::string, int> table = {{"a", 1}};
  // g++ 12 can not count fields behind such defaults as Boost.PFR does.
  std::vector<std::string> names{"a", "b"};
  std::vector<std::vector<int>> rows{{1}, {2, 3}};
  std::vector<Layer> stack = {{128, 0.2}};  // which has no operator==
  char letter = 'x';
  wchar_t wide = L'x';
  Optimizer optimizer = {};
};

namespace {

template <class Config>
std::vector<Config> searched(Space<Config> space) {
  const auto preview = simulate<Config>(
      {.space = std::move(space), .trials = 20, .metric = "loss", .mode = Min},
      {.curve = [](const Config&, std::int64_t t) { return 1.0 / static_cast<double>(t); },
       .reports = 1});
  std::vector<Config> configs;
  for (const auto& each : preview.results.trials()) configs.push_back(each.config);
  return configs;
}

}  // namespace

TEMPLATE_TEST_CASE("a field of every integer type is searched, and left alone", "[tune][space]",
                   char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                   unsigned long, long long, unsigned long long, std::size_t, std::ptrdiff_t,
                   std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t, wchar_t, char8_t, char16_t,
                   char32_t) {
  using Config = Of<TestType>;
  const auto both = searched<Config>({{"lr", uniform(0, 1)}, {"number", integer(3, 5)}});
  REQUIRE(both.size() == 20);
  for (const auto& config : both) {
    CHECK(config.number >= TestType(3));
    CHECK(config.number <= TestType(5));
  }
  for (const auto& config : searched<Config>({{"lr", uniform(0, 1)}}))
    CHECK(config.number == TestType());
  // Its own limits are kept, and what is beyond them is refused.
  constexpr auto high = std::numeric_limits<TestType>::max();
  if constexpr (sizeof(TestType) < sizeof(std::int64_t)) {
    const auto top = static_cast<std::int64_t>(high);
    for (const auto& config : searched<Config>({{"number", integer(top - 1, top)}}))
      CHECK(config.number >= static_cast<TestType>(high - 1));
    CHECK_THROWS_WITH(searched<Config>({{"number", integer(top, top + 1)}}),
                      Catch::Contains("number") && Catch::Contains(std::to_string(top + 1)));
  }
  if constexpr (std::is_unsigned_v<TestType>) {
    CHECK_THROWS_WITH(searched<Config>({{"number", integer(-1, 1)}}), Catch::Contains("number"));
  }
}

TEMPLATE_TEST_CASE("a field of every real type is searched, and left alone", "[tune][space]", float,
                   double, long double) {
  using Config = Of<TestType>;
  for (const auto& config : searched<Config>({{"number", uniform(0.25, 0.5)}})) {
    CHECK(config.number >= TestType(0.25));
    CHECK(config.number <= TestType(0.5));
  }
  for (const auto& config : searched<Config>({{"lr", uniform(0, 1)}}))
    CHECK(config.number == TestType());
}

TEST_CASE("a truth value and a text are searched", "[tune][space]") {
  for (const auto& config : searched<Of<bool>>({{"number", choice({true})}})) CHECK(config.number);
  for (const auto& config : searched<Of<std::string>>({{"number", choice({"adam", "sgd"})}}))
    CHECK((config.number == "adam" || config.number == "sgd"));
}

TEST_CASE("fields of other kinds are left as the options have them", "[tune][space]") {
  const auto configs =
      searched<Whole>({{"width", integer(8, 16)}, {"optimizer.warmup", choice({1, 2})}});
  REQUIRE(configs.size() == 20);
  for (const auto& config : configs) {
    CHECK(config.width >= 8);
    CHECK(config.optimizer.warmup <= 2);
    CHECK(config.seed == 1);
    CHECK(config.activation == Activation::Gelu);
    CHECK(config.old == Second);
    CHECK(config.folder == "data");
    CHECK_FALSE(config.limit);
    CHECK(config.layers == std::vector<std::size_t>{1, 2});
    CHECK(config.stack.front().width == 128);
    CHECK(config.letter == 'x');
    CHECK(config.optimizer.momentum == 0.9);
  }
  CHECK_THROWS_WITH(check_fields<Whole>({{"table", integer(1, 3)}}),
                    Catch::Contains("field 'table' can not be searched"));
}

}  // namespace fields_test
