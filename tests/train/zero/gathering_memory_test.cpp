// How much memory buckets of parameters have, of a Gathering by itself.
#include "zero/gathering/gathering.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <torch/utils.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"

#include "gathered_buckets.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// Bytes of this process.
rlim_t address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("a rank without memory for one more bucket lets none come ahead",
          "[train][zero][gathering]") {
  constexpr std::int64_t kLarge = 4 << 20;
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          const torch::NoGradGuard no_grad;
          Buckets buckets(gang, 4, true, kLarge);
          const auto pass = [&] {
            for (const auto bucket : {0, 1, 2, 3}) buckets.parameters[bucket].sum();
            buckets.meet();
          };
          pass();
          pass();
          const auto in_background = buckets.communicator.calls_in_background();
          expect(in_background == 3, "buckets come ahead");
          if (gang.rank() == 1) {
            const rlimit two_buckets{address_space() + kLarge * 8 * 5 / 2, RLIM_INFINITY};
            expect(setrlimit(RLIMIT_AS, &two_buckets) == 0, "a limit");
          }
          pass();
          expect(buckets.communicator.calls_in_background() == in_background + 1,
                 "the second one alone comes ahead, while one is here");
        })) == "");
}

TEST_CASE("three buckets have memory at most: two that were used, and one that comes (2)",
          "[train][zero][gathering]") {
  const auto seed = GENERATE(range(1, 4));
  CAPTURE(seed);
  constexpr int kBuckets = 5;
  constexpr std::int64_t kElements = 1 << 19;
  constexpr rlim_t kBytes = kElements * sizeof(double);
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          const torch::NoGradGuard no_grad;
          ::mallopt(M_MMAP_THRESHOLD, kBytes / 4);  // malloc keeps no bucket that it was given back
          Buckets buckets(gang, kBuckets, true, kElements);
          rlim_t most = 0;
          const auto look = [&] { most = std::max(most, address_space()); };
          buckets.communicator.set_before_call(look);
          buckets.control.set_before_call(look);
          std::mt19937 of_all(static_cast<unsigned>(seed));
          std::mt19937 own(static_cast<unsigned>(100 * seed + gang.rank()));
          const auto below = [](std::mt19937& random, int end) {
            return std::uniform_int_distribution<int>(0, end - 1)(random);
          };
          const auto use_some = [&] {
            auto& random = below(of_all, 3) == 0 ? own : of_all;
            const bool goes_in_order = below(of_all, 2) == 0;
            const auto uses = below(random, 9);
            for (int use = 0; use < uses; ++use) {
              const auto bucket = goes_in_order ? use % kBuckets : below(random, kBuckets);
              buckets.parameters[static_cast<std::size_t>(bucket)].sum();
              look();
            }
            buckets.meet();
          };
          for (int i = 0; i < 8; ++i) use_some();  // threads, and what communicators keep
          const auto without = address_space();
          most = 0;
          for (int i = 0; i < 40; ++i) use_some();
          const auto of_buckets = static_cast<double>(most - without) / kBytes;
          expect(of_buckets > 2.5 && of_buckets < 3.5,
                 [&] { return fmt::format("memory of {:.2f} buckets", of_buckets); });
        })) == "");
}
