#include "node/limits/memory_kills.hpp"

#include <fstream>

#include <catch2/catch.hpp>

#include "waiting.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;

struct Counters {
  test::TemporaryDirectory directory;
  std::string group = directory.path / "memory.oom_control", machine = directory.path / "vmstat";
  MemoryKills::Clock::time_point now{};

  Counters() {
    set(group, 0);
    set(machine, 5);
  }
  static void set(const std::string& file, int kills) {
    std::ofstream(file) << "under_oom 0\noom_kill " << kills << "\nother 3\n";
  }
  MemoryKills kills() const {
    return MemoryKills({{group, "oom_kill", "group"}, {machine, "oom_kill", "machine"}});
  }
};

}  // namespace

TEST_CASE("each kill for lack of memory explains one death, by the narrowest counter",
          "[node][memory]") {
  Counters counters;
  auto kills = counters.kills();
  CHECK(kills.explain(counters.now).empty());  // those before are of others
  Counters::set(counters.group, 1);
  Counters::set(counters.machine, 7);
  CHECK(kills.explain(counters.now) == "group");
  CHECK(kills.explain(counters.now) == "machine");
  CHECK(kills.explain(counters.now).empty());
}

TEST_CASE(
    "a kill that was counted a while before a death was seen explains it, an old one does not",
    "[node][memory]") {
  Counters counters;
  auto kills = counters.kills();
  Counters::set(counters.machine, 7);
  kills.look(counters.now);
  CHECK(kills.explain(counters.now + MemoryKills::kRecent) == "machine");
  CHECK(kills.explain(counters.now + MemoryKills::kRecent + 1s).empty());
}

TEST_CASE("counters that a machine does not have say nothing", "[node][memory]") {
  MemoryKills kills({{"/not/here", "oom_kill", "none"}, {"/proc/vmstat", "no such line", "none"}});
  CHECK(kills.explain({}).empty());
}

}  // namespace troupe::node
