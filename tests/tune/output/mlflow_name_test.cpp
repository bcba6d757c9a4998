#include "output/mlflow/mlflow_name.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "rounds.hpp"
#include "support/mlflow_stub.hpp"

namespace mlflow_name_test {

using namespace troupe::tune;

TEST_CASE("a name that MLflow takes is its own key", "[tune][mlflow]") {
  for (const auto* name :
       {"loss/train-1: a_b.c", ".a/.b/c..", "a/..b/...", "_x2c", "_x_x1", "_", " "})
    CHECK(mlflow_name(name) == name);
}

TEST_CASE("what MLflow takes in no name is written by its number", "[tune][mlflow]") {
  CHECK(mlflow_name("time, s (\xc3\xa4)") == "time_x2C s _x28_xC3_xA4_x29");
  CHECK(mlflow_name("100%") == "100_x25");
  CHECK(mlflow_name("") == "_x5F");
  CHECK(mlflow_name("/a//b/") == "_x2Fa/_x2Fb_x2F");
  CHECK(mlflow_name("/") == "_x2F");
  CHECK(mlflow_name("./a/../.") == "_x2E/a/_x2E./_x2E");
  CHECK(mlflow_name("..a") == "_x2E.a");
  CHECK(mlflow_name("_x2C") == "_x5Fx2C");
}

TEST_CASE("a name that is too long for MLflow ends in a sum of all of it", "[tune][mlflow]") {
  const std::string same(249, 'x');
  const auto first = mlflow_name(same + "aa"), second = mlflow_name(same + "ab");
  CHECK(first.size() == 250);
  CHECK(first != second);
  CHECK(first.starts_with(std::string(232, 'x') + "_h"));
  CHECK(mlflow_name(same + "a") == same + "a");
}

TEST_CASE("names that differ have keys in MLflow that differ and that it takes", "[tune][mlflow]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::string_view bytes("_x2CF./,\xff ");
  std::set<std::string> names, keys;
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (auto size = random() % 9; size > 0; --size) name += bytes[random() % bytes.size()];
    const auto key = mlflow_name(name);
    CAPTURE(name, key);
    REQUIRE(MlflowStub::is_name(key));
    names.insert(name);
    keys.insert(key);
  }
  CHECK(names.size() == keys.size());
}

}  // namespace mlflow_name_test
