// compiles: what the compiler's messages for other programs must not take for a mistake
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  int n = 3;
  std::string name = "a";
  std::vector<int> layers = {};
  bool on = true;
  bool is_small() const { return n < 3; }
};
using Dim = tune::Dim<Config>;

struct Layer {
  int width = 64;
  double dropout = 0;
};

struct OwnKey {
  operator tune::Key<Config>() const { return &Config::n; }
};

bool is_large(const Config& c) { return c.n > 3; }

int main() {
  const std::function<bool(const Config&)> large = is_large;
  int calls = 0;
  const tune::Space<Config> conditions{
      {"lr", tune::uniform(0, 1), is_large},
      {"n", 64, large},
      {"name", tune::choice({"a", "b"}), &Config::is_small},
      {"lr", tune::uniform(0, 1), &Config::on},
      {"lr", 0.5, nullptr},
      {"n", 3, {}},
      {"n", tune::integer(1, 3), [calls](const Config&) mutable { return ++calls > 1; }},
      {"n", tune::integer(1, 3), [](const auto& c) { return c.n; }},
      {"n", 3, [](const Config& c) { return c.lr; }},
      {"n", 3, [&](const Config& c) { return calls > 1 ? &c : nullptr; }}};
  const tune::Space<Config> values{{"lr", {tune::uniform(0, 1)}},
                                   {"n", {64}, is_large},
                                   {&Config::layers, std::vector{1, 2}},
                                   {"layers", {std::vector{1, 2}}},
                                   {OwnKey(), 3},
                                   {OwnKey(), [](const Config& c) { return 2 * c.n; }, is_large}};
  const Dim n{"n", 3}, lr{"lr", tune::uniform(0, 1)};
  tune::Space<Config> space{n, lr}, braces{{n, lr}};
  space.push_back({"n", 3});
  braces = space;
  tune::choice({1.0, 2.0});
  tune::choice({{1, 2}, {3}});
  tune::choice({tune::Scalar(1), "a"});
  tune::choice({0.5, "auto"});
  tune::ordinal({1, 0.5});
  tune::grid({std::string("a"), "b"});
  tune::choice({std::optional<double>(), std::optional(0.5)});
  tune::choice<std::optional<double>>({std::nullopt, 0.5});
  // The type of the first is that of all.
  tune::choice({Layer{64, 0.1}, {128, 0.2}});
  tune::ordinal({Layer{64, 0.1}, {128}, {}});
  tune::grid({std::vector{1, 2}, {3}});
  tune::choice({std::optional(0.5), {}});
  tune::choice({});
}
