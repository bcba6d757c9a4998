#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "../functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A folder for processes of one machine to leave word in.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "troupe-cpus-test-XXXXXX").string();
  Folder() { REQUIRE(::mkdtemp(path.data())); }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// -> whether the other one ran meanwhile. It looks at files, since a task that waits for a ref gives
/// its CPU back.
bool meets(const std::string& folder, int number) {
  std::ofstream(folder + "/" + std::to_string(number)) << "here";
  const auto other = folder + "/" + std::to_string(1 - number);
  for (const auto end = std::chrono::steady_clock::now() + kGuard;
       std::chrono::steady_clock::now() < end;) {
    if (std::filesystem::exists(other)) return true;
    usleep(5000);
  }
  return false;
}

double free_cpus(const Cluster& cluster) {
  const auto status = nlohmann::json::parse(cluster.status_json());
  return status["nodes"][0]["free"]["cpu"].get<double>();
}

}  // namespace

TEST_CASE("eight actors leave two CPUs to two tasks at once", "[runtime][session][cpus]") {
  const Folder folder;
  const auto cluster = init({.cpus = 2});
  std::vector<Actor<Counter>> actors;
  for (int i = 0; i < 8; ++i) actors.push_back(spawn<Counter>(i));
  for (int i = 0; i < 8; ++i) CHECK(actors[i].call<&Counter::add>(1).get(kGuard) == i + 1);

  std::vector<Ref<bool>> met{task<meets>(folder.path, 0), task<meets>(folder.path, 1)};
  for (const auto& one : met) CHECK(one.get(kGuard));
  for (int i = 0; i < 8; ++i) CHECK(actors[i].call<&Counter::add>(1).get(kGuard) == i + 2);
}

TEST_CASE("a task and a rank are given one CPU by default, an actor none",
          "[runtime][session][cpus]") {
  const auto cluster = init({.cpus = 4, .resources = {{"seat", 3}}});
  const auto plain = spawn<Counter>(0);
  const auto seated = with({.resources = {{"seat", 1}}}).spawn<Counter>(0);
  CHECK(plain.call<&Counter::add>(1).get(kGuard) == 1);
  CHECK(seated.call<&Counter::add>(1).get(kGuard) == 1);
  CHECK(free_cpus(cluster) == 4);

  const auto whole = with({.cpus = 1}).spawn<Counter>(0);
  CHECK(whole.call<&Counter::add>(1).get(kGuard) == 1);
  CHECK(free_cpus(cluster) == 3);
  const auto ranks = with({.resources = {{"seat", 1}}}).gang<Rank>({.size = 2});
  CHECK(free_cpus(cluster) == 1);
}
