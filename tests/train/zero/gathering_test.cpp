// Which buckets of parameters come when, of a Gathering by itself.
#include "zero/gathering/gathering.hpp"

#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"

#include "gathered_buckets.hpp"
#include "prefetch_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

const std::vector<int> kPass{0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0};
constexpr int kCome = 10;  // in each pass: in backward two are here

}  // namespace

TEST_CASE("buckets come in the background from the second pass on", "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          for (int pass = 0; pass < 3; ++pass) {
            buckets.use(kPass);
            buckets.meet();
            expect(buckets.communicator.calls() == (pass + 1) * kCome, "each comes once");
            expect(buckets.communicator.calls_in_background() == pass * (kCome - 1),
                   "all but the first, of which nothing came before");
          }
        })) == "");
}

TEST_CASE("a bucket is on its way before an operator needs it", "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          buckets.use(kPass);
          buckets.meet();
          buckets.communicator.hold_background();
          buckets.use(0);  // returns, while the next one has not come
          eventually([&] { return buckets.communicator.calls() >= kCome + 2; });
          expect(buckets.communicator.calls() == kCome + 2, "the next one is called for");
          expect(buckets.communicator.calls_in_background() == 0 && buckets.here() == 1,
                 "and has not come");
          buckets.communicator.let_background_go();
          buckets.use(1);
          expect(buckets.communicator.calls_in_background() >= 1, "it has come when it is used");
          buckets.meet();
        })) == "");
}

TEST_CASE("the bucket that was used longest ago is given back before another one comes",
          "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6, /*prefetches=*/false);
          buckets.communicator.set_before_call([&] {
            expect(buckets.here() < Gathering::kKept, "with the one that comes there are kKept");
          });
          buckets.use(kPass);
          buckets.meet();
        })) == "");
}

TEST_CASE("no bucket comes in the background where one rank is not to expect any",
          "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6, gang.rank() == 0);
          for (int pass = 0; pass < 3; ++pass) {
            buckets.use(kPass);
            buckets.meet();
          }
          expect(buckets.communicator.calls() == 3 * kCome, "each comes once");
          expect(buckets.communicator.calls_in_background() == 0, "none in the background");
        })) == "");
}

TEST_CASE("a bucket that was expected and is not used comes for nothing, and once",
          "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          buckets.use(kPass);
          buckets.meet();
          const auto before = buckets.communicator.calls();
          buckets.use({0, 3});  // 1 is expected after 0, and nothing after 0 and 3
          buckets.meet();
          expect(buckets.communicator.calls() - before == 3, "0, 1 and 3");
          buckets.use({0, 3});
          buckets.meet();
          expect(buckets.communicator.calls() - before == 5, "0, and then 3 in the background");
        })) == "");
}

TEST_CASE("a bucket that has come stays while it is expected", "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          buckets.use({0, 3, 1});
          buckets.meet();
          buckets.use({0, 1});
          buckets.meet();
          const auto before = buckets.communicator.calls();
          buckets.use({0, 3, 1});  // 1 is expected after 0, and after 0 and 3
          buckets.meet();
          expect(buckets.communicator.calls() - before == 3, "each comes once");
        })) == "");
}

TEST_CASE("no bucket comes in the background where ranks use different ones",
          "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          for (int pass = 0; pass < 3; ++pass) {
            buckets.use({gang.rank(), 3});  // both expect 3, beside two that come
            buckets.meet();
          }
          expect(buckets.communicator.calls_in_background() == 0, "memory is for the two");
        })) == "");
}

TEST_CASE("two buckets that take turns come once each", "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          for (int pass = 1; pass < 4; ++pass) {
            buckets.use({1, 0, 1, 0});
            buckets.meet();
            expect(buckets.communicator.calls() == 2 * pass, "none is expected that is used");
          }
        })) == "");
}

TEST_CASE("ranks that expect other buckets than each other get what they use",
          "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(3).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          for (int i = 0; i < gang.rank(); ++i) {
            buckets.use(kPass);  // the others wait, and learn nothing
            buckets.use({2, 4, 0, 5});
          }
          buckets.meet();
          for (int pass = 0; pass < 3; ++pass) {
            if (gang.rank() == 1) buckets.use({5, 3, 1});
            buckets.use(kPass);
            if (gang.rank() == 2) buckets.use({1, 3, 5});
            buckets.meet();
          }
        })) == "");
}

TEST_CASE("ranks that use, write and update as chance has it get the values of all",
          "[train][zero][gathering]") {
  const auto seed = GENERATE(range(1, 7));
  CAPTURE(seed);
  CHECK(failures(ForkedGang::on_one_node(3).run([&](GangContext& gang) {
          constexpr int kBuckets = 5;
          Buckets buckets(gang, kBuckets);
          std::mt19937 of_all(static_cast<unsigned>(seed));
          std::mt19937 own(static_cast<unsigned>(100 * seed + gang.rank()));
          const auto below = [](std::mt19937& random, int end) {
            return std::uniform_int_distribution<int>(0, end - 1)(random);
          };
          for (int i = 0; i < 40; ++i) {
            auto& random = below(of_all, 3) == 0 ? own : of_all;
            const bool goes_in_order = below(of_all, 2) == 0;
            const auto uses = below(random, 9);
            for (int use = 0; use < uses; ++use)
              buckets.use(goes_in_order ? use % kBuckets : below(random, kBuckets));
            buckets.meet();
            if (below(of_all, 4) == 0) buckets.write(below(of_all, kBuckets), i);
            if (below(of_all, 5) == 0) {
              buckets.hold();
              buckets.use(below(own, kBuckets));
              buckets.release_held();
            }
            if (below(of_all, 3) != 0) continue;
            buckets.meet();
            if (below(of_all, 2) == 0) buckets.replace(below(of_all, kBuckets));
            buckets.step();
          }
          expect(buckets.communicator.calls_in_background() > 0, "some came in the background");
        })) == "");
}

TEST_CASE("a gathering ends while a bucket is on its way", "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          buckets.use(kPass);
          buckets.meet();
          buckets.communicator.hold_background();
          buckets.use(0);
          const int before = buckets.communicator.calls_in_background();
          int at_the_end = 0;
          {
            const std::jthread lets_go([&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
              buckets.communicator.let_background_go();
            });
            buckets.gathering.end();
            at_the_end = buckets.communicator.calls_in_background();
          }
          expect(before == 0 && at_the_end == 1, "the second one was waited for");
          expect_in(thrown_by<std::logic_error>([&] { buckets.use(1); }),
                    "that brings them has ended");
          expect_in(thrown_by<std::logic_error>([&] { buckets.gathering.meet(); }),
                    "after their Context has ended");
        })) == "");
}

TEST_CASE("the memory for a bucket that was to come ahead of a round that threw is given back",
          "[train][zero][gathering]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Buckets buckets(gang, 6);
          buckets.use(kPass);
          buckets.meet();
          buckets.use({0, 1});
          const auto write_what_is_there = [&] {
            const torch::NoGradGuard no_grad;
            buckets.parameters[1].mul_(1);
          };
          if (gang.rank() == 1) write_what_is_there();
          expect_in(thrown_by<std::logic_error>([&] { buckets.use(2); }), "written to other");
          if (gang.rank() == 0) write_what_is_there();
          buckets.use(3);  // which was to come in the round of 2
          buckets.use(kPass);
          buckets.meet();
        })) == "");
}

TEST_CASE("a training has the values of one process whether or not buckets come ahead",
          "[train][zero][gathering]") {
  const bool prefetch = GENERATE(true, false);
  const int ranks = GENERATE(2, 3);
  CAPTURE(prefetch, ranks);
  CHECK(run(ranks, prefetch_options(prefetch), expect_deep_net_as_alone) == "");
}
