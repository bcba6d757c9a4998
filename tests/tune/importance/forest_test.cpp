#include "importance/forest.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <catch2/catch.hpp>

namespace forest_test {

using namespace troupe::tune;

namespace {

/// x0 in steps, x1 drawn.
std::vector<ForestField> two_numbers(std::size_t count) {
  Random random(3);
  std::vector<ForestField> fields(2);
  for (std::size_t i = 0; i < count; ++i) {
    fields[0].values.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(count));
    fields[1].values.push_back(random.unit());
  }
  return fields;
}

}  // namespace

TEST_CASE("a tree divides a step where it is", "[tune][forest]") {
  const std::vector<ForestField> fields{{.values = {0.1, 0.3, 0.5, 0.9}}};
  const std::vector<double> values{1, 1, 5, 5};
  for (const auto& tree : grown_forest(fields, values, {.trees = 20})) {
    if (tree.size() == 1) continue;  // one that has drawn samples of one side alone
    REQUIRE(tree.size() == 3);
    CHECK(tree[0].field == 0);
    // In the middle between two of the samples that it has drawn.
    CHECK(((tree[0].at > 0.19 && tree[0].at < 0.61)));
    CHECK(tree[tree[0].first].value == 1);
    CHECK(tree[tree[0].second].value == 5);
    CHECK(tree[1].is_leaf());
    CHECK(tree[2].is_leaf());
  }
}

TEST_CASE("a tree takes the split that lowers the squared error most", "[tune][forest]") {
  // Field 1 divides {0, 1} from {8, 9}; field 0 can only take one of them away.
  const std::vector<ForestField> fields{{.values = {0.2, 0.6, 0.4, 0.8}},
                                        {.values = {0.1, 0.2, 0.8, 0.9}}};
  const std::vector<double> values{0, 1, 8, 9};
  std::size_t whole = 0;
  for (const auto& tree : grown_forest(fields, values, {.trees = 200, .seed = 1})) {
    const auto leaves = std::ranges::count_if(tree, &TreeNode::is_leaf);
    if (leaves < 4) continue;
    ++whole;
    CHECK(tree[0].field == 1);
    CHECK(tree[0].at == Approx(0.5));
  }
  CHECK(whole > 5);
}

TEST_CASE("a category is divided from all others", "[tune][forest]") {
  const std::vector<ForestField> fields{{.values = {0, 1, 2, 0, 1, 2, 0, 1, 2}, .categories = 3}};
  const std::vector<double> values{1, 7, 1, 1, 7, 1, 1, 7, 1};
  const auto forest = grown_forest(fields, values, {});
  for (const auto& tree : forest) {
    CHECK(tree.size() <= 3);
    if (!tree[0].is_leaf()) CHECK((tree[tree[0].first].value == 7) == (tree[0].at == 1));
  }
  CHECK(prediction(forest, fields, std::array{1.0}) > 6);
  CHECK(prediction(forest, fields, std::array{2.0}) < 2);
}

TEST_CASE("a forest expects what it was grown from", "[tune][forest]") {
  const auto fields = two_numbers(200);
  std::vector<double> values;
  for (std::size_t i = 0; i < 200; ++i)
    values.push_back(std::sin(6 * fields[0].values[i]) + fields[1].values[i]);
  const auto forest = grown_forest(fields, values, {});
  REQUIRE(forest.size() == 64);
  double error = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::array point{fields[0].values[i], fields[1].values[i]};
    error += std::abs(prediction(forest, fields, point) - values[i]) / 200;
  }
  CHECK(error < 0.1);
  const std::array between{0.2501, 0.5};
  CHECK(prediction(forest, fields, between) == Approx(std::sin(1.5) + 0.5).margin(0.15));
}

TEST_CASE("a seed gives the same forest, and another seed another one", "[tune][forest]") {
  const auto fields = two_numbers(50);
  const auto& values = fields[1].values;
  const auto same = [](const std::vector<Tree>& a, const std::vector<Tree>& b) {
    return std::ranges::equal(a, b, [](const Tree& tree, const Tree& other) {
      return std::ranges::equal(tree, other, [](const TreeNode& x, const TreeNode& y) {
        return x.value == y.value && x.field == y.field && x.at == y.at && x.first == y.first &&
               x.second == y.second;
      });
    });
  };
  const auto forest = grown_forest(fields, values, {.seed = 7});
  CHECK(same(forest, grown_forest(fields, values, {.seed = 7})));
  CHECK_FALSE(same(forest, grown_forest(fields, values, {.seed = 8})));
}

TEST_CASE("among equally good splits a random field is taken", "[tune][forest]") {
  const std::vector<ForestField> fields(3, {.values = {0.2, 0.8}});
  std::array<int, 3> taken{};
  for (const auto& tree : grown_forest(fields, std::array{0.0, 1.0}, {.trees = 600})) {
    if (!tree[0].is_leaf()) ++taken[tree[0].field];
  }
  for (const int count : taken) CHECK(count > 60);
}

TEST_CASE("a tree is no deeper and has no more samples than it may have", "[tune][forest]") {
  const auto fields = two_numbers(500);
  for (const auto& tree : grown_forest(fields, fields[0].values, {.trees = 3, .max_depth = 2}))
    CHECK(tree.size() == 7);
  for (const auto& tree : grown_forest(fields, fields[0].values, {.trees = 3, .most_draws = 20}))
    CHECK(std::ranges::count_if(tree, &TreeNode::is_leaf) <= 20);
}

TEST_CASE("equal values make a tree without a split", "[tune][forest]") {
  const auto fields = two_numbers(20);
  for (const auto& tree : grown_forest(fields, std::vector<double>(20, 0.1), {})) {
    REQUIRE(tree.size() == 1);
    CHECK(tree[0].value == Approx(0.1));
  }
}

}  // namespace forest_test
