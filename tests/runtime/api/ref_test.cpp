#include <troupe/troupe.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "fake_core.hpp"

using namespace std::chrono_literals;
using troupe::Ref;

namespace {
int add(int a, int b) { return a + b; }
int broken() { throw std::runtime_error("no"); }
void quiet() {}
}  // namespace

TEST_CASE("try_get gives nothing until the value is there, and never throws", "[api][ref]") {
  const auto ref = troupe::task<add>(1, 2);
  const auto bad = troupe::task<broken>();
  CHECK_FALSE(ref.ready());
  CHECK(ref.try_get() == std::nullopt);
  CHECK(bad.failure() == std::nullopt);

  fake::run_all();

  CHECK(ref.ready());
  CHECK(ref.try_get() == 3);
  CHECK_FALSE(ref.failure().has_value());
  CHECK(bad.try_get() == std::nullopt);
  CHECK(bad.failure()->message == "no");
}

TEST_CASE("each get decodes a value of its own", "[api][ref]") {
  const auto ref = troupe::put(std::vector{1, 2});
  auto mine = ref.get();
  mine.push_back(3);
  CHECK(ref.get() == std::vector{1, 2});
}

TEST_CASE("wait divides refs into those that are ready and the others, in their order",
          "[api][ref]") {
  const std::vector refs{troupe::task<add>(1, 1), troupe::put(5), troupe::task<broken>(),
                         troupe::task<add>(2, 2)};

  const auto now = troupe::wait(refs, 4, 0ms);
  CHECK(now.ready == std::vector{refs[1]});
  CHECK(now.unready == std::vector{refs[0], refs[2], refs[3]});

  const auto later = troupe::wait(refs, 3);
  CHECK(later.ready == std::vector{refs[0], refs[1], refs[2]});
  CHECK(later.unready == std::vector{refs[3]});
}

TEST_CASE("wait_for says whether the ref is ready", "[api][ref]") {
  const auto ref = troupe::task<quiet>();
  CHECK_FALSE(ref.wait_for(0ms));
  CHECK(ref.wait_for(1s));
  ref.get();
}

TEST_CASE("a cancelled call that has not begun fails with Cancelled", "[api][ref]") {
  const auto ref = troupe::task<add>(1, 2);
  ref.cancel();
  CHECK_THROWS_AS(ref.get(), troupe::Cancelled);
}

TEST_CASE("a literal is put as a string", "[api][ref]") {
  const Ref<std::string> ref = troupe::put("text");
  CHECK(ref.get() == "text");
}

TEST_CASE("wait hands out as many as were asked for, also where more are ready", "[api][ref]") {
  const std::vector refs{troupe::put(1), troupe::put(2), troupe::put(3)};
  const auto waited = troupe::wait(refs, 2);
  CHECK(waited.ready == std::vector{refs[0], refs[1]});
  CHECK(waited.unready == std::vector{refs[2]});
  CHECK(troupe::wait(refs, 0).ready.empty());
}

TEST_CASE("wait takes refs of several types", "[api][ref]") {
  const auto number = troupe::put(1);
  const auto text = troupe::put("text");
  const auto later = troupe::task<quiet>();
  const auto waited = troupe::wait({number, text, later}, 2);
  CHECK(waited.ready == std::vector<troupe::AnyRef>{number, text});
  REQUIRE(waited.unready.size() == 1);
  CHECK(waited.unready.front() == later);
  CHECK_FALSE(waited.unready.front().failure());
  later.get();
  CHECK(waited.unready.front().ready());
}
