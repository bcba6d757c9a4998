#include "importance/fanova.hpp"

#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

namespace fanova_test {

using namespace troupe::tune;

namespace {

constexpr auto kLeaf = TreeNode::kNone;

std::vector<ForestField> numbers(std::size_t fields, std::size_t count) {
  Random random(11);
  std::vector<ForestField> all(fields);
  for (auto& field : all) {
    for (std::size_t i = 0; i < count; ++i) field.values.push_back(random.unit());
  }
  return all;
}

template <class Function>
std::vector<double> values_of(const std::vector<ForestField>& fields, Function function) {
  std::vector<double> values;
  for (std::size_t i = 0; i < fields[0].values.size(); ++i) {
    std::vector<double> x;
    for (const auto& field : fields) x.push_back(field.values[i]);
    values.push_back(function(x));
  }
  return values;
}

}  // namespace

TEST_CASE("the parts of a tree with two splits are those worked out by hand", "[tune][fanova]") {
  // 0 where x0 <= 0.5; else 4 where x1 <= 0.25, and 8 beyond. Mean 3.5, variance 12.75. The marginal
  // of x0 is 0 and 7: variance 12.25. That of x1 is 2 and 4: variance 0.75 * 0.25 * 4 = 0.75. Here
  // both come from one tree in which x1 acts on one side, so their sum passes over the interaction.
  const Tree tree{{.value = 3.5, .field = 0, .at = 0.5, .first = 1, .second = 2},
                  {.value = 0, .field = kLeaf},
                  {.value = 7, .field = 1, .at = 0.25, .first = 3, .second = 4},
                  {.value = 4, .field = kLeaf},
                  {.value = 8, .field = kLeaf}};
  const double variance = 0.5 * 3.5 * 3.5 + 0.125 * 0.5 * 0.5 + 0.375 * 4.5 * 4.5;
  const auto parts = parts_of_tree(tree, numbers(2, 1));
  CHECK(parts[0] == Approx(12.25 / variance));
  CHECK(parts[1] == Approx(0.75 / variance));
}

TEST_CASE("each category of a field is as likely as the others", "[tune][fanova]") {
  // 6 for category 2 of three, else 0: all of the variance, by the field alone.
  const Tree alone{{.value = 2, .field = 0, .at = 2, .first = 1, .second = 2},
                   {.value = 6, .field = kLeaf},
                   {.value = 0, .field = kLeaf}};
  const std::vector<ForestField> fields{{.values = {0}, .categories = 3}, {.values = {0.5}}};
  CHECK(parts_of_tree(alone, fields) == std::vector<double>{1, 0});
  // In category 0 x1 decides between 0 and 6; else 3. The marginal of the category is 3 everywhere,
  // that of x1 is 2 and 4, and the variance is 9 / 3.
  const Tree both{{.value = 3, .field = 0, .at = 0, .first = 1, .second = 2},
                  {.value = 3, .field = 1, .at = 0.5, .first = 3, .second = 4},
                  {.value = 3, .field = kLeaf},
                  {.value = 0, .field = kLeaf},
                  {.value = 6, .field = kLeaf}};
  const auto parts = parts_of_tree(both, fields);
  CHECK(parts[0] == Approx(0).margin(1e-12));
  CHECK(parts[1] == Approx(1.0 / 3));
}

TEST_CASE("of exclusive or no field explains anything alone", "[tune][fanova]") {
  const Tree tree{{.value = 0.5, .field = 0, .at = 0.5, .first = 1, .second = 2},
                  {.value = 0.5, .field = 1, .at = 0.5, .first = 3, .second = 4},
                  {.value = 0.5, .field = 1, .at = 0.5, .first = 5, .second = 6},
                  {.value = 0, .field = kLeaf},
                  {.value = 1, .field = kLeaf},
                  {.value = 1, .field = kLeaf},
                  {.value = 0, .field = kLeaf}};
  for (const double part : parts_of_tree(tree, numbers(2, 1)))
    CHECK(part == Approx(0).margin(1e-12));
}

TEST_CASE("a field that decides alone has all of the importance", "[tune][fanova]") {
  const auto fields = numbers(2, 100);
  const auto parts = fanova(fields, values_of(fields, [](const auto& x) { return x[0]; }));
  CHECK(parts[0] > 0.97);
  CHECK(parts[1] < 0.02);
}

TEST_CASE("fields that add up have the parts of their variances", "[tune][fanova]") {
  const auto fields = numbers(3, 400);
  const auto values = values_of(fields, [](const auto& x) { return 3 * x[0] + x[1] + 0 * x[2]; });
  const auto parts = fanova(fields, values);
  CHECK(parts[0] == Approx(0.9).margin(0.03));
  CHECK(parts[1] == Approx(0.1).margin(0.03));
  CHECK(parts[2] < 0.02);
  // Neither the unit nor the sign of the metric matters, nor how large it is.
  for (const double unit : {-1.0, 1e-300, 1e307}) {
    auto others = values;
    for (auto& value : others) value *= unit;
    const auto again = fanova(fields, others);
    CHECK(again[0] == Approx(parts[0]).margin(0.01));
    CHECK(again[1] == Approx(parts[1]).margin(0.01));
  }
}

TEST_CASE("the parts of the Ishigami function are near those that are known", "[tune][fanova]") {
  const auto fields = numbers(3, 1000);
  const auto parts = fanova(fields, values_of(fields, [](std::vector<double> x) {
                              for (auto& each : x) each = (2 * each - 1) * 3.14159265358979;
                              return std::sin(x[0]) + 7 * std::pow(std::sin(x[1]), 2) +
                                     0.1 * std::pow(x[2], 4) * std::sin(x[0]);
                            }));
  // Trees take x1 first, whose single split helps more: they make too little of x2, as all do that
  // are grown greedily.
  CHECK(parts[0] == Approx(0.3139).margin(0.06));
  CHECK(parts[1] == Approx(0.4424).margin(0.12));
  CHECK(parts[2] < 0.03);
}

TEST_CASE("values that are all equal have no importance, and no part that is none",
          "[tune][fanova]") {
  const auto fields = numbers(2, 30);
  for (const double value : {0.0, 3.0, -1e308})
    CHECK(fanova(fields, std::vector<double>(30, value)) == std::vector<double>{0, 0});
}

TEST_CASE("none, one and two samples have parts that are numbers", "[tune][fanova]") {
  CHECK(fanova({{}, {}}, std::vector<double>{}) == std::vector<double>{0, 0});
  CHECK(fanova({}, std::vector<double>{}).empty());
  CHECK(fanova(numbers(2, 1), std::vector<double>{4}) == std::vector<double>{0, 0});
  const auto parts = fanova(numbers(2, 2), std::vector<double>{4, 5});
  CHECK(std::accumulate(parts.begin(), parts.end(), 0.0) == Approx(1));
  for (const double part : parts) CHECK(part > 0.2);
}

TEST_CASE("fANOVA gives the same figures each time", "[tune][fanova]") {
  const auto fields = numbers(4, 60);
  const auto values = values_of(fields, [](const auto& x) { return x[0] * x[1] + x[2]; });
  CHECK(fanova(fields, values) == fanova(fields, values));
}

}  // namespace fanova_test
