// Conditions and functions that look at fields which have no value yet, that throw, or that give
// what their field can not take: all refused before a trial begins.
#include <catch2/catch.hpp>

#include <troupe/tune/detail/search.hpp>
#include <troupe/tune/simulate.hpp>

namespace order_test {

using namespace troupe::tune;

namespace {

struct Config {
  std::string kind = "adam";
  double lr = 0.1;
  double momentum = 0.5;
  int steps = 100;
  std::int8_t warmup = 1;
  bool nested = false;
};

using Function = std::function<bool(const Config&)>;

bool is_sgd(const Config& config) { return config.kind == "sgd"; }

void check(Space<Config> space) {
  detail::plan_of(Options<Config>{.space = std::move(space), .trials = 4, .metric = "loss"});
}

void search(Space<Config> space) {
  const Options<Config> options{.space = std::move(space), .trials = 20, .metric = "loss"};
  simulate<Config>(options, {.curve = [](const Config&, auto) { return 1.0; }, .reports = 1});
}

}  // namespace

TEST_CASE("a condition on a field behind its own is refused with both", "[tune][space]") {
  CHECK_THROWS_WITH(
      check({{"momentum", uniform(0.8, 1), is_sgd}, {"kind", choice({"sgd", "adam"})}}),
      "tune: the condition or function of field 'momentum' looks at field 'kind', which stands "
      "behind it in .space and has no value by then; put 'kind' before 'momentum'");
  CHECK_NOTHROW(check({{"kind", choice({"sgd", "adam"})}, {"momentum", uniform(0.8, 1), is_sgd}}));
}

TEST_CASE("whatever a condition or a function looks at behind it is found", "[tune][space]") {
  using Catch::Contains;
  // A rare value, which only the end of the domain has.
  const Function is_long = [](const Config& config) { return config.steps >= 1'000'000; };
  CHECK_THROWS_WITH(check({{"lr", uniform(0, 1), is_long}, {"steps", integer(1, 1'000'000)}}),
                    Contains("field 'lr' looks at field 'steps'"));
  // Two that count together only.
  const Function both = [](const Config& config) { return is_sgd(config) && config.nested; };
  CHECK_THROWS_WITH(check({{"lr", uniform(0, 1), both},
                           {"kind", choice({"sgd", "adam"})},
                           {"nested", choice({true, false})}}),
                    Contains("field 'lr' looks at field"));
  // A constant, and a field that is computed.
  CHECK_THROWS_WITH(check({{"lr", uniform(0, 1), is_sgd}, {"kind", "sgd"}}),
                    Contains("field 'lr' looks at field 'kind'"));
  CHECK_THROWS_WITH(
      check({{"lr", [](const Config& config) { return 1.0 / config.steps; }},
             {"momentum", uniform(0, 1)},
             {"steps", [](const Config& config) { return config.momentum > 0.5 ? 10 : 20; }}}),
      Contains("field 'lr' looks at field 'steps'"));
}

TEST_CASE("conditions that need each other are refused by all their fields", "[tune][space]") {
  const Function high_lr = [](const Config& config) { return config.lr > 0.5; };
  const Function high_momentum = [](const Config& config) { return config.momentum > 0.5; };
  const Function long_run = [](const Config& config) { return config.steps > 500; };
  CHECK_THROWS_WITH(
      check({{"lr", uniform(0, 1), high_momentum}, {"momentum", uniform(0, 1), high_lr}}),
      Catch::Contains("'lr' looks at 'momentum', 'momentum' looks at 'lr'; leave one"));
  CHECK_THROWS_WITH(check({{"lr", uniform(0, 1), high_momentum},
                           {"momentum", uniform(0, 1), long_run},
                           {"steps", integer(1, 1000), high_lr}}),
                    Catch::Contains("'lr' looks at 'momentum', 'momentum' looks at 'steps', "
                                    "'steps' looks at 'lr'; leave one"));
}

TEST_CASE("what a function looks at in the base configuration is no field behind it",
          "[tune][space]") {
  CHECK_NOTHROW(check({{"steps", [](const Config& config) { return config.steps / 10; }},
                       {"lr", uniform(0, 1), [](const Config& config) { return config.steps > 5; }},
                       {"momentum", uniform(0, 1)}}));
  int calls = 0;  // one that is not pure is no field's
  CHECK_NOTHROW(check({{"lr", [&](const Config&) { return 1.0 * ++calls; }}, {"steps", 5}}));
}

TEST_CASE("a condition that throws is named with the configuration so far", "[tune][space]") {
  const Function fails = [](const Config& config) -> bool {
    throw std::invalid_argument("no such kind: " + config.kind);
  };
  CHECK_THROWS_WITH(search({{"kind", "sgd"}, {"lr", uniform(0, 1), fails}}),
                    "tune: the condition of field 'lr' cannot be used with kind=sgd: no such kind: "
                    "sgd");
  CHECK_THROWS_WITH(
      search({{"steps", 7}, {"lr", [](const Config&) -> double { return std::stod("x"); }}}),
      Catch::StartsWith("tune: the function that computes field 'lr' cannot be used with steps=7"));
}

TEST_CASE("a function of another type than its field's is refused at the start", "[tune][space]") {
  CHECK_THROWS_WITH(
      check({{"steps", [](const Config& config) { return config.lr * 10; }}}),
      "tune: field 'steps' takes an integer, and the function that computes it returns a real "
      "number: let it return an integer, as by a static_cast");
  CHECK_THROWS_WITH(
      check({{"lr", [](const Config&) { return "high"; }}}),
      Catch::Contains("'lr' takes a number, and the function that computes it returns "
                      "a text"));
  CHECK_THROWS_WITH(check({{"nested", [](const Config&) { return 1; }}}),
                    Catch::Contains("'nested' takes a truth value"));
  CHECK_NOTHROW(check({{"lr", [](const Config&) { return 1; }},
                       {"kind", [](const Config&) { return std::string("sgd"); }}}));
  // What only a call tells: it is named with the configuration.
  CHECK_THROWS_WITH(
      search({{"steps", 300}, {"warmup", [](const Config& config) { return config.steps; }}}),
      "tune: the function that computes field 'warmup' cannot be used with steps=300: field "
      "'warmup' takes -128 to 127, not 300");
  CHECK_THROWS_WITH(search({{"steps", [](const Config&) { return Scalar("many"); }}}),
                    Catch::Contains("field 'steps' takes an integer, not the text many"));
}

}  // namespace order_test
