// Averages that NCCL computes while the CPU goes on: on a GPU, and over the double.
#include <troupe/train/communicator.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <catch2/catch.hpp>
#include <troupe/errors.hpp>

#include "collective/nccl/on_device.hpp"
#include "guard.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

/// The device does nothing on the default stream from here on, behind what is there already, until
/// this lets go.
class HeldStream {
 public:
  HeldStream() {
    auto owned = std::make_unique<Gate>(is_held_);
    expect(cudaLaunchHostFunc(cudaStreamLegacy, &HeldStream::wait, owned.get()) == cudaSuccess,
           "a function of the host on the default stream");
    static_cast<void>(owned.release());  // the function deletes it
  }
  ~HeldStream() { let_go(); }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;
  void let_go() {
    *is_held_ = false;
    is_held_->notify_all();
  }

 private:
  using Gate = std::shared_ptr<std::atomic<bool>>;
  static void wait(void* gate) {
    const std::unique_ptr<Gate> owned(static_cast<Gate*>(gate));
    (*owned)->wait(true);
  }

  const Gate is_held_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace

TEST_CASE("NCCL averages in the background, and its other calls wait for that",
          "[train][collective][nccl][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto comm = make_nccl_communicator(context, on_one_gpu(context));
          auto& background = background_of(*comm);
          const Filled filled;
          background.complete();  // of nothing
          for (int step = 1; step <= 3; ++step) {
            const auto own = static_cast<float>(step * (comm->rank() + 1));
            const auto average = static_cast<float>(step) * 1.5F;
            const OnDevice large(std::vector<float>(1 << 20, own));
            const OnDevice small(std::vector<float>(7, 10 * own));
            for (const auto& [data, count] : {std::pair(large.data(), std::size_t{1} << 20),
                                              std::pair(small.data(), std::size_t{7})}) {
              background.begin_average(data, count, DataType::Float32, filled.now());
            }
            if (step == 2) comm->barrier();
            background.complete();
            expect(large.values() == std::vector<float>(1 << 20, average), "the large average");
            expect(small.values() == std::vector<float>(7, 10 * average), "the small average");
          }
          check_sum(*comm, 1000);
        }) == "");
}

TEST_CASE("an average in the background names the missing rank at its deadline",
          "[train][collective][nccl][hang][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto options = on_one_gpu(context);
          options.timeout = 10s;
          auto comm = make_nccl_communicator(context, options);
          comm->barrier();
          if (context.rank() == 1) {
            context.rendezvous().get("it is over", kGuard);
            return;
          }
          auto& background = background_of(*comm);
          const Filled filled;
          const OnDevice data(std::vector<float>(5, 1));
          const auto begin = [&] {
            background.begin_average(data.data(), 5, DataType::Float32, filled.now());
          };
          const auto error = thrown_by<TimedOut>([&] {
            begin();
            background.complete();
          });
          const auto again = thrown_by<TimedOut>(begin);
          context.rendezvous().set("it is over", "1");
          expect_in(error,
                    "rank 0 waited 10.0 s in all_reduce of 5 float32 (average), call 2; rank 1 did "
                    "not come");
          expect(again == error, "the communicator has ended with it: " + again);
        }) == "");
}

TEST_CASE("an average in the background returns while the device still fills its buffer",
          "[train][collective][nccl][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto comm = make_nccl_communicator(context, on_one_gpu(context));
          auto& background = background_of(*comm);
          const auto own = static_cast<float>(2 * comm->rank() + 1);
          const OnDevice first(std::vector<float>(1000, own)), second(std::vector<float>(7, own));
          const Filled filled;
          const auto begin_both = [&] {
            background.begin_average(first.data(), 1000, DataType::Float32, filled.now());
            background.begin_average(second.data(), 7, DataType::Float32, filled.now());
          };
          begin_both();  // NCCL connects the ranks and loads its kernels, for which it may wait
          background.complete();
          {
            HeldStream held;
            begin_both();
            // Not before held lets go: a call that waits for the device waits until it is killed.
            expect(cudaEventQuery(filled.last()) == cudaErrorNotReady, "it is not filled");
          }
          background.complete();
          expect(first.values() == std::vector<float>(1000, 2), "the first average");
          expect(second.values() == std::vector<float>(7, 2), "the second average");
        }) == "");
}
