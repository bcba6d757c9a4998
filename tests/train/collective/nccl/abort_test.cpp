// Processes that live on where an NCCL communicator is aborted, and make another one: on a GPU, and
// over the double.
#include <troupe/train/communicator.hpp>
#include <troupe/train/work.hpp>

#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "collective/nccl/on_device.hpp"
#include "guard.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using troupe::test::kGuard;

namespace {

/// Works that wait for the other rank, which has not begun them.
class PendingWorks {
 public:
  explicit PendingWorks(Communicator& comm) : queue_(comm) {}
  std::string error() {
    return thrown_by<GangBroken>([&] { last_.wait(); });
  }

 private:
  OnDevice<float> many_{std::vector<float>(70'001, 1)}, one_{{1}};
  WorkQueue queue_;
  Work first_ = queue_.all_reduce(many_.data(), 70'001, DataType::Float32);
  Work last_ = queue_.all_reduce(one_.data(), 1, DataType::Float32);
};

/// The other rank's works are pending when one aborts that has no call.
std::string abort_without_works(GangContext& gang, Communicator& comm, int ender) {
  const auto begun = fmt::format("begun/{}", ender);
  if (gang.rank() == ender) {
    gang.rendezvous().get(begun, kGuard);
    comm.abort("enough");
    return thrown_by<GangBroken>([&] { comm.barrier(); });
  }
  PendingWorks works(comm);
  gang.rendezvous().set(begun, "1");
  return works.error();
}

/// One aborts while its own works are pending, and then the other rank comes to them.
std::string abort_of_works(GangContext& gang, Communicator& comm, int ender) {
  const auto aborted = fmt::format("aborted/{}", ender);
  if (gang.rank() != ender) gang.rendezvous().get(aborted, kGuard);
  PendingWorks works(comm);
  if (gang.rank() == ender) {
    comm.abort("enough");
    gang.rendezvous().set(aborted, "1");
  }
  return works.error();
}

}  // namespace

TEST_CASE("ranks make one NCCL communicator after another where each is aborted in a call",
          "[train][collective][nccl][abort][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          for (int round = 0; round < 4; ++round) {
            const int ender = round % 2;
            const auto comm = make_nccl_communicator(
                context, on_one_gpu(context, fmt::format("round {}", round)));
            check_sum(*comm, 1000);
            const auto error = round < 2 ? abort_without_works(context, *comm, ender)
                                         : abort_of_works(context, *comm, ender);
            expect_in(error, fmt::format("rank {} ended the communicator: enough", ender));
          }
          check_sum(*make_nccl_communicator(context, on_one_gpu(context, "last")), 1000);
        }) == "");
}
