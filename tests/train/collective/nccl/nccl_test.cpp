#include <troupe/train/communicator.hpp>
#include <troupe/train/work.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "collective/nccl/on_device.hpp"
#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/one_gpu.hpp"
#include "support/rank_logs.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

std::vector<std::int32_t> message(int from, int to, std::size_t count) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = from * 1'000'000 + to * 100'000 + static_cast<int>(i % 99'991);
  return values;
}

void check_message(Communicator& comm, std::size_t count) {
  Numbers data(message(comm.rank(), 1, count));
  if (comm.rank() == 0) comm.send(data.data(), count, DataType::Int32, 1);
  if (comm.rank() == 1) comm.recv(data.data(), count, DataType::Int32, 0);
  if (comm.rank() == 1) expect(data.values() == message(0, 1, count), "what rank 0 sent");
}

void check_all_to_all(Communicator& comm, std::size_t count) {
  std::vector<std::int32_t> parts, expected;
  for (int r = 0; r < comm.size(); ++r) {
    for (auto x : message(comm.rank(), r, count)) parts.push_back(x);
    for (auto x : message(r, comm.rank(), count)) expected.push_back(x);
  }
  const Numbers in(parts), out(std::vector<std::int32_t>(parts.size(), -1));
  comm.all_to_all(in.data(), out.data(), count, DataType::Int32);
  expect(out.values() == expected, "each rank's part of every other's");
}

/// The bytes of 1, 2 and 4, of which all types represent each sum, average and product here.
using Bytes = std::vector<std::uint8_t>;
std::array<Bytes, 3> small_values(DataType type) {
  std::array<Bytes, 3> found;
  for (std::size_t i = 0; i < 3; ++i) {
    auto put = [&](auto value) {
      found[i].resize(sizeof value);
      std::memcpy(found[i].data(), &value, sizeof value);
    };
    const int value = 1 << i;
    switch (type) {
      case DataType::Int8:
      case DataType::UInt8:
        put(static_cast<std::uint8_t>(value));
        break;
      case DataType::Int32:
        put(static_cast<std::int32_t>(value));
        break;
      case DataType::Int64:
        put(static_cast<std::int64_t>(value));
        break;
      case DataType::Float16:  // the exponent alone, of bias 15 behind 10 bits
        put(static_cast<std::uint16_t>((15 + i) << 10));
        break;
      case DataType::BFloat16:  // of bias 127 behind 7 bits
        put(static_cast<std::uint16_t>((127 + i) << 7));
        break;
      case DataType::Float32:
        put(static_cast<float>(value));
        break;
      case DataType::Float64:
        put(static_cast<double>(value));
        break;
    }
  }
  return found;
}

Bytes data_of(int rank, std::size_t count, DataType type) {
  const auto values = small_values(type);
  Bytes data;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& value = values[(i + static_cast<std::size_t>(rank)) % 3];
    data.insert(data.end(), value.begin(), value.end());
  }
  return data;
}

/// One collective: what it makes of `in`, which is in the memory that the communicator works in.
using Collective = void (*)(Communicator&, void* in, void* out, std::size_t count, DataType);

/// That NCCL gives bit for bit what `host` gives.
void check_as_host(Communicator& nccl, Communicator& host, DataType type, const char* what,
                   Collective collective) {
  const auto ranks = static_cast<std::size_t>(nccl.size());
  for (const std::size_t count : {1, 999, 70'001}) {
    auto in = data_of(nccl.rank(), count * ranks, type);
    Bytes out(in.size() * ranks);
    const OnDevice device_in(in), device_out(out);
    collective(host, in.data(), out.data(), count, type);
    collective(nccl, device_in.data(), device_out.data(), count, type);
    expect(device_in.values() == in && device_out.values() == out,
           fmt::format("{} of {} {} gives what `host` gives", what, count, name_of(type)));
  }
}

}  // namespace

TEST_CASE("every collective of NCCL gives what the host communicator gives, for every type",
          "[train][collective][nccl][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto nccl = make_nccl_communicator(context, on_one_gpu(context));
          auto host = make_host_communicator(context, {.timeout = kGuard});
          for (auto type :
               {DataType::Int8, DataType::UInt8, DataType::Int32, DataType::Int64,
                DataType::Float16, DataType::BFloat16, DataType::Float32, DataType::Float64}) {
            auto check = [&](const char* what, Collective collective) {
              check_as_host(*nccl, *host, type, what, collective);
            };
            check("all_reduce (sum)", [](auto& comm, auto* in, auto*, auto count, auto each) {
              comm.all_reduce(in, count, each, ReduceOp::Sum);
            });
            check("all_reduce (min)", [](auto& comm, auto* in, auto*, auto count, auto each) {
              comm.all_reduce(in, count, each, ReduceOp::Min);
            });
            check("all_reduce (max)", [](auto& comm, auto* in, auto*, auto count, auto each) {
              comm.all_reduce(in, count, each, ReduceOp::Max);
            });
            check("all_reduce (product)", [](auto& comm, auto* in, auto*, auto count, auto each) {
              comm.all_reduce(in, count, each, ReduceOp::Product);
            });
            if (is_floating(type)) {
              check("all_reduce (average)", [](auto& comm, auto* in, auto*, auto count, auto each) {
                comm.all_reduce(in, count, each, ReduceOp::Average);
              });
            }
            check("broadcast", [](auto& comm, auto* in, auto*, auto count, auto each) {
              comm.broadcast(in, count, each, 1);
            });
            check("all_gather", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              comm.all_gather(in, out, count, each);
            });
            check("all_gather (parts)", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), count);
              counts.front() = 0;
              comm.all_gather(in, out, counts, each);
            });
            check("reduce", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              comm.reduce(in, out, count, each, ReduceOp::Sum, 1);
            });
            check("gather", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              comm.gather(in, out, count, each, 0);
            });
            check("scatter", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              comm.scatter(in, out, count, each, 1);
            });
            check("reduce_scatter", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              comm.reduce_scatter(in, out, count, each, ReduceOp::Sum);
            });
            check("all_to_all", [](auto& comm, auto* in, auto* out, auto count, auto each) {
              comm.all_to_all(in, out, count, each);
            });
          }
        }) == "");
}

TEST_CASE("NCCL sends messages and deals out parts", "[train][collective][nccl][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto comm = make_nccl_communicator(context, on_one_gpu(context));
          for (std::size_t count : {1, 1000, 300'007}) {
            check_message(*comm, count);
            check_all_to_all(*comm, count);
          }
          comm->barrier();
        }) == "");
}

TEST_CASE("NCCL splits a communicator", "[train][collective][nccl][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto comm = make_nccl_communicator(context, on_one_gpu(context));
          auto turned = comm->split(0, -comm->rank());
          expect(turned->rank() == 1 - comm->rank() && turned->size() == 2, "the order of keys");
          check_all_to_all(*turned, 1000);
          auto alone = comm->split(comm->rank() == 0 ? Communicator::kNoColor : 3, 0);
          expect((alone == nullptr) == (comm->rank() == 0), "no communicator without a color");
          if (alone) check_sum(*alone, 10);
          check_sum(*comm, 1000);
        }) == "");
}

TEST_CASE("works of a queue give what NCCL's calls give", "[train][collective][work][nccl][gpu]") {
  CHECK(run_on_one_gpu(2, [](GangContext& context) {
          auto comm = make_nccl_communicator(context, on_one_gpu(context));
          const auto rank = static_cast<float>(context.rank());
          const OnDevice<float> first({rank, 1}), second({rank, 2}), both({0, 0, 0, 0});
          WorkQueue queue(*comm);
          queue.all_reduce(first.data(), 2, DataType::Float32);
          queue.all_gather(second.data(), both.data(), 2, DataType::Float32).wait();
          expect(first.values() == std::vector<float>{1, 2}, "the sums");
          expect(both.values() == std::vector<float>{0, 2, 1, 2}, "what all ranks had");
          queue.wait_all();
          check_sum(*comm, 1000);
        }) == "");
}

TEST_CASE("without a GPU the NCCL communicator says that there is none",
          "[train][collective][nccl]") {
  if (sees_gpu()) {
    WARN("skipped: this process sees a CUDA device");
    return;
  }
  const auto outcomes =
      ForkedGang::on_one_node(1).run([](GangContext& gang) { make_nccl_communicator(gang); });
  CHECK(outcomes[0].type == "Impossible");
  CHECK_THAT(outcomes[0].message, Catch::Contains("no CUDA device is visible to this process: "));
}

TEST_CASE("NCCL reduces over one and two ranks of one GPU", "[train][collective][nccl][gpu]") {
  const int ranks = GENERATE(1, 2);
  CHECK(run_on_one_gpu(ranks, [](GangContext& context) {
          auto comm = make_nccl_communicator(context, on_one_gpu(context));
          for (std::size_t count : {1, 1000, 1'000'003}) check_sum(*comm, count);
          comm->barrier();
        }) == "");
}

TEST_CASE("a rank that is killed ends the others' NCCL call", "[train][collective][nccl][gpu]") {
  if (skipped_without_gpu()) return;
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    auto comm = make_nccl_communicator(context, on_one_gpu(context));
    comm->barrier();
    if (context.rank() == 1) ::kill(::getpid(), SIGKILL);
    for (;;) comm->barrier();
  });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].type == "GangBroken");
}

TEST_CASE(
    "an NCCL call that hangs is said once, with the rank that is missing, and that it goes on",
    "[train][collective][nccl][hang][gpu]") {
  if (skipped_without_gpu()) return;
  const RankLogs logs(2);
  CHECK(run_on_one_gpu(2, [&](GangContext& context) {
          logs.take_over(context.rank());
          auto options = on_one_gpu(context);
          options.warn_after = 3s;
          auto comm = make_nccl_communicator(context, options);
          comm->barrier();
          if (context.rank() == 1) logs.await("in all_reduce");
          check_sum(*comm, 5);
          comm->barrier();
        }) == "");
  const auto hangs = logs.lines("s in all_reduce");
  REQUIRE(hangs.size() == 1);
  INFO(hangs[0]);
  CHECK_THAT(hangs[0],
             Contains("rank 0 has waited ") &&
                 Contains("all_reduce of 5 float32 (average), call 2 (communicator \"nccl\")") &&
                 Contains("nothing was heard in this call from rank 1, which") &&
                 Contains("The call fails after 60 s"));
  const auto ends = logs.lines("goes on: all_reduce");
  REQUIRE(ends.size() == 1);
  CHECK_THAT(ends[0], Contains("call 2 (communicator \"nccl\") ended after "));
}

TEST_CASE("an NCCL call names the missing rank at its deadline, and its process can go on",
          "[train][collective][nccl][hang][gpu]") {
  const RankLogs logs(2);
  CHECK(run_on_one_gpu(2, [&](GangContext& context) {
          logs.take_over(context.rank());
          auto options = on_one_gpu(context);
          options.timeout = 10s;
          {
            auto comm = make_nccl_communicator(context, options);
            comm->barrier();
            if (context.rank() == 0) {
              expect_in(thrown_by<TimedOut>([&] { comm->barrier(); }),
                        "rank 0 waited 10.0 s in barrier, call 2; rank 1 did not come");
              context.rendezvous().set("it is over", "1");
            } else {
              context.rendezvous().get("it is over", kGuard);
            }
          }
          check_sum(*make_nccl_communicator(context, on_one_gpu(context, "another")), 1000);
        }) == "");
}
