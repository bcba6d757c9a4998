#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "store/catalog/kept_pages.hpp"

using namespace troupe::store;

namespace {

Extents::Taken pages_at(std::uint64_t first, std::uint64_t count) {
  return {{first * kPageBytes, count * kPageBytes}, {1_process}};
}

}  // namespace

TEST_CASE("each process keeps pages up to the limit, whatever others keep",
          "[store][catalog][kept]") {
  KeptPages kept(4 * kPageBytes);
  kept.keep(1_process, pages_at(0, 3));

  CHECK(kept.has_room(1_process, kPageBytes));
  CHECK_FALSE(kept.has_room(1_process, 2 * kPageBytes));
  CHECK(kept.has_room(2_process, 4 * kPageBytes));
  CHECK_FALSE(kept.has_room(2_process, 5 * kPageBytes));
  kept.keep(2_process, pages_at(3, 4));
  CHECK(kept.bytes() == 7 * kPageBytes);
  kept.check();
}

TEST_CASE("a process gets back only pages that it keeps, and large enough",
          "[store][catalog][kept]") {
  KeptPages kept(4 * kPageBytes);
  kept.keep(1_process, pages_at(2, 2));

  CHECK_FALSE(kept.take(2_process, 2 * kPageBytes));
  CHECK_FALSE(kept.take(1_process, 3 * kPageBytes));
  CHECK_FALSE(kept.take(1_process, 2 * kPageBytes, 2 * kPageBytes + 1));
  const auto taken = kept.take(1_process, 2 * kPageBytes, kPageBytes + 1);
  REQUIRE(taken);
  CHECK(taken->extent == Extent{2 * kPageBytes, 2 * kPageBytes});
  CHECK(taken->writers == Writers{1_process});
  CHECK_FALSE(kept.take(1_process, 2 * kPageBytes));
  CHECK(kept.bytes() == 0);
  kept.check();
}

TEST_CASE("what a process keeps that ends is handed over, all of it", "[store][catalog][kept]") {
  KeptPages kept(4 * kPageBytes);
  kept.keep(1_process, pages_at(0, 1));
  kept.keep(1_process, pages_at(5, 2));
  kept.keep(2_process, pages_at(1, 1));

  CHECK(kept.take_all(1_process).size() == 2);
  CHECK_FALSE(kept.has_any(1_process));
  CHECK(kept.take_all(1_process).empty());
  CHECK(kept.of(2_process) == std::vector<Extent>{{kPageBytes, kPageBytes}});
  CHECK(kept.bytes() == kPageBytes);
  kept.check();
}

TEST_CASE("extents of one process that overlap are found", "[store][catalog][kept]") {
  KeptPages kept(4 * kPageBytes);
  kept.keep(1_process, pages_at(0, 2));
  kept.keep(1_process, pages_at(1, 1));
  CHECK_THROWS(kept.check());
}

TEST_CASE("kept pages are counted right, whoever keeps and takes",
          "[store][catalog][kept][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  KeptPages kept(16 * kPageBytes);
  std::map<std::uint64_t, ProcessId> model;  // 40 slots of 4 pages -> who keeps one there
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t slot = random() % 40;
    const ProcessId process(1 + random() % 4);
    const auto found = model.find(slot);
    if (random() % 20 == 0) {
      const auto left =
          std::erase_if(model, [&](const auto& one) { return one.second == process; });
      REQUIRE(kept.take_all(process).size() == left);
    } else if (found != model.end()) {
      const auto taken = kept.take(process, slot * 4 * kPageBytes);
      REQUIRE(taken.has_value() == (found->second == process));
      if (taken) model.erase(found);
    } else if (kept.has_room(process, 4 * kPageBytes)) {
      kept.keep(process, pages_at(slot * 4, 4));
      model[slot] = process;
    }
    kept.check();
    REQUIRE(kept.bytes() == model.size() * 4 * kPageBytes);
  }
}
