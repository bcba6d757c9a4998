// Names and paths that are not UTF-8, in private clusters.
#include <cmath>
#include <filesystem>
#include <future>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("init refuses names that are none, with the field and what to give",
          "[runtime][session][name]") {
  const auto advice = Catch::Contains("give 1 to 256 bytes of UTF-8 without control characters");
  CHECK_THROWS_AS(init({.name = "\xff", .cpus = 1}), Refused);
  CHECK_THROWS_WITH(init({.name = "\xff", .cpus = 1}),
                    Catch::StartsWith("InitOptions::name '") && advice);
  CHECK_THROWS_WITH(init({.cpus = 1, .resources = {{"\xff", 1}}}),
                    Catch::StartsWith("the name in InitOptions::resources '") && advice);
  const auto cluster = init({.name = "Größe", .cpus = 1});
  CHECK(nlohmann::json::parse(cluster.status_json())["jobs"][0]["name"] == "Größe");
}

TEST_CASE("init refuses a weight that is none, with what to give", "[runtime][session]") {
  for (const auto weight : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CAPTURE(weight);
    CHECK_THROWS_AS(init({.weight = weight, .cpus = 1}), std::invalid_argument);
    CHECK_THROWS_WITH(init({.weight = weight, .cpus = 1}),
                      Catch::StartsWith("InitOptions::weight is ") &&
                          Catch::Contains("give 1 for an equal part"));
  }
  const auto cluster = init({.weight = 2.5, .cpus = 1});
  CHECK(nlohmann::json::parse(cluster.status_json())["jobs"][0]["weight"] == 2.5);
}

TEST_CASE("an actor's name that is none is refused, and its cluster serves on",
          "[runtime][session][name]") {
  const auto cluster = init({.cpus = 1});
  CHECK_THROWS_AS(with({.name = "\xff\xfe"}).spawn<Counter>(0), std::invalid_argument);
  CHECK_THROWS_AS(find<Counter>("\xff\xfe", kGuard), Refused);
  CHECK_THROWS_AS(find<Counter>(std::string_view("a\0b", 3), kGuard), Refused);
  CHECK(nlohmann::json::parse(cluster.status_json())["actors"].empty());
  CHECK(task<twice>(1).get(kGuard) == 2);
}

TEST_CASE("a private cluster that is started anew spills to a folder of any bytes",
          "[runtime][session][name]") {
  auto folder = (std::filesystem::temp_directory_path() / "troupe-spill-test-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()));
  const auto spill = folder + "/pr\xe9g";
  std::promise<void> done;
  std::thread other([&] { done.get_future().wait(); });  // so that nothing can be forked from here
  CHECK_NOTHROW([&] {
    const auto cluster = init({.cpus = 1, .spill_directory = spill});
    CHECK(task<twice>(1).get(kGuard) == 2);
    CHECK(std::filesystem::is_directory(spill));
  }());
  done.set_value();
  other.join();
  std::filesystem::remove_all(folder);
}
