#include <troupe/tune/space.hpp>

#include <catch2/catch.hpp>

namespace space_test {

using namespace troupe::tune;
using Catch::Matchers::Equals;

namespace {

struct Config {
  double lr = 0.1;
  int batch = 32;
  bool nesterov = false;
  std::string optimizer = "sgd";
  std::uint8_t layers = 2;
  float decay = 0;
  std::vector<int> widths = {};
};

Space<Config> only(Dim<Config> dim) { return {std::move(dim)}; }

}  // namespace

TEST_CASE("the names of a configuration's fields are known when the program is compiled",
          "[tune][space]") {
  constexpr auto names = detail::field_names<Config>();
  static_assert(names[0] == "lr" && names[1] == "batch" && names[3] == "optimizer" &&
                names[6] == "widths");
  struct Local {
    int a_1 = 0;
    double Bc = 0;
  };
  static_assert(detail::field_names<Local>()[0] == "a_1" &&
                detail::field_names<Local>()[1] == "Bc");
  SUCCEED();
}

TEST_CASE("a key is written as a name or as a pointer to the member", "[tune][space]") {
  const auto space = checked<Config>(
      {{"lr", loguniform(1e-3, 1.0)}, {&Config::batch, choice({32, 64})}, {"optimizer", "adam"}});

  REQUIRE(space.size() == 3);
  CHECK(space[0] == Dimension{"lr", loguniform(1e-3, 1.0)});
  CHECK(space[1] == Dimension{"batch", choice({32, 64})});
  CHECK(space[2] == Dimension{"optimizer", "adam"});
}

TEST_CASE("values reach their fields and the others keep what they had", "[tune][space]") {
  const auto config = configured(
      Config{.layers = 7},
      {{"lr", 0.5}, {"batch", 64}, {"nesterov", true}, {"optimizer", "adam"}, {"decay", 1}});

  CHECK(config.lr == 0.5);
  CHECK(config.batch == 64);
  CHECK(config.nesterov);
  CHECK(config.optimizer == "adam");
  CHECK(config.layers == 7);
  CHECK(config.decay == 1.0f);
}

TEST_CASE("a value of the wrong kind is refused before anything runs, with the field's name",
          "[tune][space]") {
  CHECK_THROWS_WITH(
      checked(only({"batch", uniform(1, 2)})),
      Equals("field 'batch' takes an integer, not the real number 1; tune::integer(low, high) is a "
             "domain of integers"));
  CHECK_THROWS_WITH(
      checked(only({"lr", "fast"})),
      Equals("field 'lr' takes a number, not the text fast; a number has no quotes, and the "
             "lack of one is std::optional<int>{}"));
  CHECK_THROWS_WITH(
      checked(only({"decay", uniform(0, 1e39)})),
      Equals("field 'decay' takes -3.4028234663852886e+38 to 3.4028234663852886e+38, not 1e+39"));
  CHECK_THROWS_WITH(checked(only({"lr", true})),
                    Equals("field 'lr' takes a number, not the truth value true"));
  CHECK_THROWS_WITH(
      checked(only({"nesterov", 1})),
      Equals("field 'nesterov' takes a truth value, not the integer 1; tune::choice({false, "
             "true}) has both"));
  CHECK_THROWS_WITH(
      checked(only({"optimizer", 3})),
      Equals("field 'optimizer' takes text, not the integer 3; text is written in quotes"));
  CHECK_THROWS_WITH(checked(only({"layers", integer(1, 300)})),
                    Equals("field 'layers' takes 0 to 255, not 300"));
  CHECK_THROWS_WITH(
      checked(only({"widths", 3})),
      Equals("field 'widths' takes a list, written as [64, 32], not the integer 3; give "
             "it values of the field's own type"));
  CHECK_THROWS_WITH(checked<Config>({{"lr", 0.1}, {&Config::lr, 0.2}}),
                    Equals("field 'lr' stands twice in the search space"));
  CHECK_THROWS_WITH(configured(Config{}, {{"rl", 0.1}}),
                    Equals("the configuration has no field 'rl'"));
}

}  // namespace space_test
