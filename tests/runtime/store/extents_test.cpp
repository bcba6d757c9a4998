#include <algorithm>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "store/memory/extents.hpp"

using namespace troupe::store;

namespace {

constexpr std::uint64_t kPages = kPageBytes;

/// What is handed out, kept by the test: the extents must agree with it.
class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}

  void step() {
    switch (pick(5)) {
      case 0:
      case 1:
        return take();
      case 2:
        return give_back();
      case 3:
        return give_back_hole();
      default:
        return release();
    }
  }
  void check() const {
    std::uint64_t used = 0;
    for (const auto& range : used_) used += range.bytes;
    REQUIRE(extents_.used() == used);
    auto sorted = used_;
    std::ranges::sort(sorted);
    for (std::size_t i = 1; i < sorted.size(); ++i)
      REQUIRE(sorted[i - 1].end() <= sorted[i].offset);
  }
  void drain() {
    while (!used_.empty()) give_back();
    check();
    REQUIRE(extents_.used() == 0);
    const auto warm = extents_.warm();
    std::uint64_t released = 0;
    for (const auto& extent : extents_.release(warm)) released += extent.bytes;
    REQUIRE(released == warm);
    REQUIRE(extents_.largest_hole() == kSpace);  // the holes have grown together
  }

 private:
  static constexpr std::uint64_t kSpace = 256 * kPages;

  std::uint64_t pick(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random_);
  }
  std::size_t any() { return static_cast<std::size_t>(pick(used_.size())); }

  void take() {
    const auto bytes = (1 + pick(20)) * kPages;
    const ProcessId by(1 + pick(6));
    if (auto taken = extents_.take_warm(bytes, by)) {
      REQUIRE(taken->extent.bytes == bytes);
      add_writer(taken->writers, by);
      used_.push_back(taken->extent);
      writers_.push_back(taken->writers);
    } else if (const auto hole = extents_.take_hole(bytes)) {
      REQUIRE(extents_.largest_warm() < bytes);
      REQUIRE(hole->bytes == bytes);
      used_.push_back(*hole);
      writers_.push_back({by});
    } else {
      REQUIRE(extents_.largest_hole() < bytes);
    }
  }
  Writers remove(std::size_t at) {
    auto writers = writers_[at];
    used_.erase(used_.begin() + static_cast<long>(at));
    writers_.erase(writers_.begin() + static_cast<long>(at));
    return writers;
  }
  void give_back() {
    if (used_.empty()) return;
    const auto at = any();
    const auto extent = used_[at];
    extents_.give_back(extent, remove(at));
  }
  void give_back_hole() {
    if (used_.empty()) return;
    const auto at = any();
    const auto extent = used_[at];
    remove(at);
    extents_.give_back_hole(extent);
  }
  void release() {
    const auto warm = extents_.warm(), wanted = pick(8) * kPages;
    std::uint64_t released = 0;
    for (const auto& extent : extents_.release(wanted)) released += extent.bytes;
    REQUIRE(released == std::min(warm, wanted));
    REQUIRE(extents_.warm() == warm - released);
  }

  std::mt19937 random_;
  Extents extents_{kSpace};
  std::vector<Extent> used_;
  std::vector<Writers> writers_;
};

}  // namespace

TEST_CASE("pages go back first to the process that has written to them", "[store][extents]") {
  Extents extents(64 * kPages);
  const auto first = *extents.take_hole(4 * kPages);
  const auto second = *extents.take_hole(4 * kPages);
  extents.give_back(first, {1_process});
  extents.give_back(second, {2_process});

  CHECK(extents.take_warm(4 * kPages, 2_process)->extent == second);
  CHECK(extents.take_warm(4 * kPages, 2_process)->extent ==
        first);  // another's are still better than none
  CHECK_FALSE(extents.take_warm(kPages, 2_process));
}

TEST_CASE("the tightest range is taken, and the rest of it stays free", "[store][extents]") {
  Extents extents(64 * kPages);
  const auto large = *extents.take_hole(10 * kPages);
  const auto small = *extents.take_hole(3 * kPages);
  extents.give_back(large, {1_process});
  extents.give_back(small, {2_process});

  CHECK(extents.take_warm(2 * kPages, 3_process)->extent == Extent{small.offset, 2 * kPages});
  CHECK(extents.warm() == 11 * kPages);
  CHECK(extents.largest_warm() == 10 * kPages);
}

TEST_CASE("neighbours that only together are large enough are joined", "[store][extents]") {
  Extents extents(64 * kPages);
  const auto first = *extents.take_hole(4 * kPages);
  const auto second = *extents.take_hole(4 * kPages);
  extents.give_back(first, {1_process, 2_process});
  extents.give_back(second, {2_process, 3_process});

  const auto taken = extents.take_warm(7 * kPages, 1_process);

  REQUIRE(taken);
  CHECK(taken->extent == Extent{first.offset, 7 * kPages});
  CHECK(taken->writers == Writers{2_process});  // who has written to all of it
}

TEST_CASE("what was given back first becomes a hole first", "[store][extents]") {
  Extents extents(64 * kPages);
  const auto first = *extents.take_hole(4 * kPages);
  const auto second = *extents.take_hole(4 * kPages);
  extents.give_back(second, {2_process});
  extents.give_back(first, {1_process});

  CHECK(extents.release(6 * kPages) == std::vector<Extent>{second, {first.offset, 2 * kPages}});
  CHECK(extents.warm() == 2 * kPages);
  CHECK(extents.largest_hole() == 60 * kPages);
}

TEST_CASE("of many writers the recent ones are remembered", "[store][extents]") {
  Writers writers;
  for (const ProcessId by : {7_process, 3_process, 9_process, 5_process, 8_process, 2_process})
    add_writer(writers, by);
  CHECK(writers == Writers{2_process, 7_process, 8_process, 9_process});
}

TEST_CASE("ranges never overlap and no byte is lost, whatever happens",
          "[store][extents][property]") {
  const auto seed = GENERATE(take(20, random(0u, 1u << 30)));
  CAPTURE(seed);
  Model model(seed);
  for (int i = 0; i < 2000; ++i) {
    model.step();
    if (i % 16 == 0) model.check();
  }
  model.drain();
}
