// Enumerators, lists, optionals and structs as values of a domain, and as the text they are written as.
#include <troupe/tune.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/temporary_folder.hpp"

namespace {
enum class Hidden { One, Two };
}  // namespace

namespace written_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using Catch::Contains;

enum class Activation { Relu, Tanh, Gelu = 100, Far = 1000 };
enum Order { First, Second };
enum class Large : std::uint64_t { Last = ~std::uint64_t{0} };
enum class MayBeNone { none, some };
template <class A, class B>
struct Scope {
  enum class Inner : std::int8_t { Low = -128, High = 127 };
};

struct Layer {  // without an operator==
  int width = 1;
  bool norm = false;
};
struct Optimizer {
  std::string name = "sgd";
  double lr = 0.1;
  std::optional<double> clip = {};
};
struct Named {
  std::optional<std::string> name = {};
};
struct Stage {
  Optimizer optimizer = {};
  int depth = 2;
};
struct Config {
  double lr = 0.1;
  Activation activation = Activation::Relu;
  std::vector<int> widths = {};
  std::vector<Layer> layers = {};
  Optimizer optimizer = {};
  Stage stage = {};
  std::optional<int> limit = {};
  std::array<float, 2> betas = {0.9F, 0.999F};
  std::filesystem::path folder = {};
  Order order = First;
};

namespace {

template <class T>
std::string read_back(const T& value) {
  const auto text = detail::written(value);
  T again{};
  detail::WrittenReader reader(text);
  detail::read_written(reader, again);
  reader.end();
  CHECK(detail::written(again) == text);
  return text;
}

/// What the error of reading the text as T says; "read" where there is none.
template <class T>
std::string refused(const std::string& text) {
  T value{};
  detail::WrittenReader reader(text);
  try {
    detail::read_written(reader, value);
    reader.end();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "read";
}

void train(tune::Context& ctx, const Config& config) {
  ctx.report({{"loss", config.activation == Activation::Tanh ? 1.0 + config.optimizer.lr : 2.0}});
}

void train_in_steps(tune::Context& ctx, const Config& config) {
  for (int t = 1; t <= 4; ++t) {
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(t));
    std::filesystem::create_directories(checkpoint);
    const double loss = static_cast<double>(config.widths.size()) + 1.0 / config.widths[0];
    if (ctx.report({{"loss", loss}}, checkpoint) == troupe::Verdict::Stop) return;
  }
}

Options<Config> options() {
  return {.space = {{"activation", choice({Activation::Relu, Activation::Tanh})},
                    {"widths", choice({{64}, {128, 64}})},
                    {"layers", choice<std::vector<Layer>>({{{1, true}}, {{2, false}, {3, true}}})},
                    {"optimizer", choice({Optimizer{.name = "adam", .clip = 0.5},
                                          Optimizer{.name = "say \"so\"", .lr = 0.25}})},
                    {&Config::limit, choice<std::optional<int>>({std::nullopt, 3})},
                    {"stage.optimizer", Optimizer{.name = "none"}},
                    {"stage.depth", [](const Config& config) { return config.limit.value_or(7); }},
                    {"betas", ordinal<std::array<float, 2>>({{0.9F, 0.99F}, {0.8F, 0.9F}})},
                    {"folder", std::filesystem::path("/data")},
                    {"order", ordinal({First, Second})}},
          .trials = 24,
          .metric = "loss",
          .mode = Min,
          .seed = 3,
          .show = Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("an enumerator is written as its name, a value of the enum without a name as its number",
          "[tune][space][written]") {
  CHECK(read_back(Activation::Gelu) == "Gelu");
  CHECK(read_back(Activation::Far) == "1000");
  CHECK(read_back(Activation(7)) == "7");
  CHECK(read_back(Second) == "Second");
  CHECK(read_back(Hidden::Two) == "Two");
  CHECK(read_back(Large::Last) == "18446744073709551615");
  CHECK(read_back(Scope<int, long>::Inner::Low) == "Low");
  CHECK(read_back(Scope<int, long>::Inner::High) == "High");
  enum class Local : bool { No, Yes };
  CHECK(read_back(Local::Yes) == "Yes");
  static_assert(detail::enumerator_of<Activation>("Tanh") == Activation::Tanh);
  static_assert(!detail::enumerator_of<Activation>(""));
}

TEST_CASE("each value is read back from its text", "[tune][space][written]") {
  CHECK(read_back(std::vector<int>{}) == "[]");
  CHECK(read_back(std::vector<std::vector<bool>>{{true}, {}, {false, true}}) ==
        "[[true], [], [false, true]]");
  CHECK(read_back(std::array<float, 2>{0.1F, 1e30F}) == "[0.1, 1e+30]");
  CHECK(read_back(std::vector<double>{0.1, -1.0 / 3}) == "[0.1, -0.3333333333333333]");
  CHECK(read_back(std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max()}) ==
        "[18446744073709551615]");
  CHECK(read_back(std::vector<std::string>{"a, \"b\"]", "\\", ""}) == R"(["a, \"b\"]", "\\", ""])");
  CHECK(read_back(Stage{.optimizer = {.name = "{adam}", .clip = 0.5}}) ==
        R"({optimizer: {name: "{adam}", lr: 0.1, clip: 0.5}, depth: 2})");
  CHECK(read_back(std::vector<std::optional<Activation>>{std::nullopt, Activation::Tanh}) ==
        "[none, Tanh]");
}

TEST_CASE("what cannot be read is refused with its place", "[tune][space][written]") {
  CHECK(refused<std::vector<int>>(" [ 1,2 ] ") == "read");
  CHECK(refused<std::vector<int>>("[1, x]") == "at character 4 it lacks an integer of its type");
  CHECK(refused<std::vector<std::uint8_t>>("[256]") ==
        "at character 2 it lacks an integer of its type");
  CHECK(refused<std::vector<int>>("[1, 2") == "at character 6 it lacks ']'");
  CHECK(refused<std::vector<int>>("[1] 2") == "at character 5 it lacks its end");
  CHECK(refused<std::vector<std::string>>("[\"a") == "at character 4 it lacks a closing quote");
  CHECK(refused<std::array<int, 2>>("[1]") == "at character 3 it lacks ',': it has 1 of 2 values");
  CHECK(refused<Layer>("{width: 1}") == "at character 10 it lacks ','");
  CHECK(refused<Layer>("{depth: 1}") == "at character 2 it lacks the field width:");
  CHECK(refused<Order>("Third") == "at character 1 it lacks one of First, Second");
  CHECK(refused<Order>("5") == "at character 1 it lacks one of First, Second");
  CHECK(refused<Activation>("0") == "at character 1 it lacks one of Relu, Tanh, Gelu");
  CHECK(refused<Large>("Last") == "at character 1 it lacks the number of an enumerator");
  CHECK(refused<std::vector<double>>("[inf]") == "at character 2 it lacks a finite number");
  CHECK(refused<Scope<int, int>::Inner>("128") == "at character 1 it lacks one of Low, High");
}

TEST_CASE("a field takes the values of its type, by their text too", "[tune][space][written]") {
  const auto check = [](Dim<Config> dim) { checked<Config>({std::move(dim)}); };
  check({"activation", choice({"Tanh", "Gelu"})});
  CHECK_THROWS_WITH(check({"activation", choice({"Tanh", "tanh"})}),
                    Contains("field 'activation' takes the name of an enumerator, not tanh: at "
                             "character 1 it lacks one of Relu, Tanh, Gelu"));
  CHECK_THROWS_WITH(check({"activation", integer(0, 1)}),
                    Contains("takes the name of an enumerator, not the integer 0"));
  CHECK_THROWS_WITH(check({"lr", choice({Activation::Relu})}),
                    Contains("field 'lr' takes a number, not the text Relu"));
  CHECK_THROWS_WITH(
      check({"optimizer", Optimizer{.lr = std::numeric_limits<double>::infinity()}}),
      Contains("field 'optimizer' takes a struct, written as {lr: 0.1, layers: 2}, not "
               "{name: \"sgd\", lr: inf") &&
          Contains("it lacks a finite number"));
  check({"limit", choice<std::optional<int>>({3, std::nullopt})});
  CHECK_THROWS_WITH(choice<std::optional<std::string>>({"some", "none"}),
                    Contains("an optional text \"none\" cannot be searched"));
  CHECK_THROWS_WITH(
      searched_part<Named>({{"name", choice<std::optional<std::string>>({std::nullopt, "some"})}},
                           {.name = "none"}),
      Contains("an optional text \"none\" cannot be searched"));
  static_assert(!detail::is_written<std::optional<MayBeNone>>());
  static_assert(!detail::is_written<std::optional<std::optional<int>>>());
}

TEST_CASE("a field that may have no value is found among its domain's values, wherever none stands",
          "[tune][space][written]") {
  struct Absent {
    std::optional<double> clip = {};
    std::optional<int> cap = {};
    std::optional<Activation> after = {};
    std::optional<Layer> layer = {};
    std::optional<double> rate = {};
  };
  const Space<Absent> space{
      {"clip", choice<std::optional<double>>({std::nullopt, 0.5, 1.0})},
      {"cap", ordinal<std::optional<int>>({std::nullopt, 5})},
      {"after", grid<std::optional<Activation>>({std::nullopt, Activation::Tanh})},
      {"layer", choice<std::optional<Layer>>({std::nullopt, Layer{2, true}})},
      {"rate", uniform(0, 1)}};
  const auto found = [&](const Absent& config) { return searched_part(space, config); };
  CHECK(found({0.5, 5, Activation::Tanh, Layer{2, true}, 0.25}) ==
        Configuration{{"clip", 0.5},
                      {"cap", 5},
                      {"after", "Tanh"},
                      {"layer", "{width: 2, norm: true}"},
                      {"rate", 0.25}});
  CHECK(
      found({.rate = 0}) ==
      Configuration{
          {"clip", "none"}, {"cap", "none"}, {"after", "none"}, {"layer", "none"}, {"rate", 0.0}});
  CHECK_THROWS_WITH(found({.cap = 6, .rate = 0}),
                    Contains("field 'cap' holds 6, which is not in ordinal(none, 5)"));
  CHECK_THROWS_WITH(found({}), Contains("field 'rate' holds none, which is not in uniform(0, 1)"));
}

TEST_CASE("a struct is searched as a whole, or in its fields, and not both",
          "[tune][space][written]") {
  CHECK_THROWS_WITH(
      checked<Config>({{"stage.depth", 2}, {"stage", Stage()}}),
      Contains("field 'stage.depth' is a part of 'stage', which stands in the search space too"));
  CHECK_THROWS_WITH(checked<Config>({{&Config::stage, Stage()}, {"stage.optimizer.lr", 0.1}}),
                    Contains("field 'stage.optimizer.lr' is a part of 'stage'"));
  checked<Config>({{"stage.optimizer", Optimizer()}, {"stage.depth", 2}, {"optimizer.lr", 0.1}});
  CHECK(Key<Config>(&Config::optimizer).name() == "optimizer");
  CHECK(Key<Config>(&Config::lr).name() == "lr");
}

TEST_CASE("every trial has the values that its files say, and a search goes on with them",
          "[tune][space][written]") {
  const TemporaryFolder folder;
  auto wanted = options();
  wanted.searcher = tpe();
  wanted.storage = folder.path();
  wanted.first = {{.activation = Activation::Tanh,
                   .widths = {128, 64},
                   .layers = {{1, true}},
                   .optimizer = {.name = "adam", .clip = 0.5},
                   .limit = 3,
                   .betas = {0.8F, 0.9F}}};
  const auto results = tune::run<train>(wanted);
  CHECK(to_string(results.trials()[0].trial.config) ==
        R"(activation=Tanh, widths=[128, 64], layers=[{width: 1, norm: true}], )"
        R"(optimizer={name: "adam", lr: 0.1, clip: 0.5}, limit=3, )"
        R"(stage.optimizer={name: "none", lr: 0.1, clip: none}, stage.depth=3, )"
        R"(betas=[0.8, 0.9], folder=/data, order=First)");
  std::set<std::string> seen;
  for (const auto& [config, trial, text] : results.trials()) {
    seen.insert(config.optimizer.name);
    CHECK(config.activation != Activation::Gelu);
    CHECK(config.stage.depth == config.limit.value_or(7));
    CHECK(config.stage.optimizer.name == "none");
    CHECK(config.layers.size() == (config.layers[0].norm ? 1U : 2U));
    CHECK(config.folder == "/data");
  }
  CHECK(seen == std::set<std::string>{"adam", "say \"so\""});
  CHECK(results.best().config.activation == Activation::Tanh);

  const auto loaded = load<Config>(results.folder());
  CHECK(loaded.best().config.widths == results.best().config.widths);
  wanted.trials = 40;
  CHECK(tune::resume<train>(results.folder(), wanted).trials().size() == 40);
  auto next = options();
  next.known = loaded.known();
  REQUIRE(next.known.size() == 24);
  next.searcher = tpe();
  CHECK(tune::run<train>(next).best().config.activation == Activation::Tanh);
  next.first = {{.activation = Activation::Gelu}};
  CHECK_THROWS_WITH(tune::run<train>(next),
                    Contains(".first[0]: field 'activation' holds Gelu, which is not in "
                             "choice(Relu, Tanh)"));
}

TEST_CASE("populations mutate enumerators and lists", "[tune][space][written]") {
  const TemporaryFolder folder;
  auto wanted = options();
  const auto widths = choice<std::vector<int>>({{16}, {32}, {64}, {128, 64}});
  const auto activation = choice({Activation::Relu, Activation::Tanh, Activation::Gelu});
  wanted.space = {{"activation", activation}, {"widths", widths}};
  wanted.trials = 6;
  wanted.storage = folder.path();
  wanted.scheduler =
      pbt({.interval = 1, .max_t = 12, .mutate = {{"activation", activation}, {"widths", widths}}});
  const auto results = tune::run<train_in_steps>(wanted);
  std::size_t changed = 0;
  for (const auto& [config, trial, text] : results.trials()) {
    for (const auto& takeover : trial.takeovers) {
      CHECK(widths.contains(takeover.after.at(1).second));
      changed += takeover.after == takeover.donor_config ? 0 : 1;
    }
  }
  CHECK(changed > 0);

  const auto refused = [&](Space<Config> space, const SearchSpace& mutate) {
    wanted.space = std::move(space);
    wanted.scheduler = pbt({.interval = 1, .max_t = 12, .mutate = mutate});
    CHECK_THROWS_WITH(tune::run<train_in_steps>(wanted),
                      Contains("field 'stage.depth' is a part of 'stage'"));
  };
  refused({{"stage", Stage()}}, {{"stage.depth", integer(1, 3)}});
  refused({{"lr", 0.1}}, {{"stage", choice({Stage()})}, {"stage.depth", integer(1, 3)}});
}

}  // namespace written_test
