#include <troupe/train/communicator.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "collective/host/host_options.hpp"
#include "support/elements.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// What rank `rank` brings at index i: small whole numbers, so that every type and order gives the
/// exact sum.
int value_of_rank(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) + 1;
}

int expected(ReduceOp op, int ranks, std::size_t i) {
  int result = value_of_rank(0, i);
  for (int r = 1; r < ranks; ++r) {
    const int v = value_of_rank(r, i);
    switch (op) {
      case ReduceOp::Min:
        result = std::min(result, v);
        break;
      case ReduceOp::Max:
        result = std::max(result, v);
        break;
      case ReduceOp::Product:
        result *= v;
        break;
      default:
        result += v;
    }
  }
  return result;
}

template <class T>
void check_all_reduce(Communicator& comm, DataType type, ReduceOp op, std::size_t count) {
  std::vector<T> data(count);
  for (std::size_t i = 0; i < count; ++i) encode(data[i], value_of_rank(comm.rank(), i));
  comm.all_reduce(data.data(), count, type, op);
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = expected(op, comm.size(), i) /
                         (op == ReduceOp::Average ? static_cast<double>(comm.size()) : 1.0);
    T rounded;
    encode(rounded, exact);
    if (decode(data[i]) != decode(rounded)) {
      throw std::runtime_error(
          fmt::format("all_reduce {} {} of {} on {} ranks: element {} is {}, not {}", name_of(type),
                      name_of(op), count, comm.size(), i, decode(data[i]), decode(rounded)));
    }
  }
}

void check_every_type(Communicator& comm, std::size_t count) {
  for (auto op : {ReduceOp::Sum, ReduceOp::Average, ReduceOp::Min, ReduceOp::Max}) {
    check_all_reduce<float>(comm, DataType::Float32, op, count);
    check_all_reduce<double>(comm, DataType::Float64, op, count);
    check_all_reduce<Float16>(comm, DataType::Float16, op, count);
    check_all_reduce<BFloat16>(comm, DataType::BFloat16, op, count);
    if (op == ReduceOp::Average) continue;
    check_all_reduce<std::int8_t>(comm, DataType::Int8, op, count);
    check_all_reduce<std::uint8_t>(comm, DataType::UInt8, op, count);
    check_all_reduce<std::int32_t>(comm, DataType::Int32, op, count);
    check_all_reduce<std::int64_t>(comm, DataType::Int64, op, count);
  }
  check_all_reduce<double>(comm, DataType::Float64, ReduceOp::Product, count);
  check_all_reduce<std::int64_t>(comm, DataType::Int64, ReduceOp::Product, count);
}

/// Buffers that are root's alone are null elsewhere.
void check_to_and_from_one(Communicator& comm, std::size_t count) {
  const int ranks = comm.size();
  const auto width = static_cast<std::size_t>(ranks);
  std::vector<std::int64_t> mine(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = value_of_rank(comm.rank(), i);
  for (int root = 0; root < ranks; ++root) {
    const bool is_root = comm.rank() == root;
    const auto said = [&](const char* what) {
      return [=] { return fmt::format("{} of {}, root {}", what, count, root); };
    };
    std::vector<std::int64_t> sum(is_root ? count : 0), all(is_root ? count * width : 0);
    const auto null_elsewhere = [&](auto& data) { return is_root ? data.data() : nullptr; };
    comm.reduce(mine.data(), null_elsewhere(sum), count, DataType::Int64, ReduceOp::Sum, root);
    for (std::size_t i = 0; i < sum.size(); ++i)
      expect(sum[i] == expected(ReduceOp::Sum, ranks, i), said("reduce"));
    comm.gather(mine.data(), null_elsewhere(all), count, DataType::Int64, root);
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect(
          all[i] == value_of_rank(static_cast<int>(i / std::max<std::size_t>(count, 1)), i % count),
          said("gather"));
      all[i] += root;
    }
    std::vector<std::int64_t> part(count, -1);
    comm.scatter(null_elsewhere(all), part.data(), count, DataType::Int64, root);
    for (std::size_t i = 0; i < count; ++i) expect(part[i] == mine[i] + root, said("scatter"));
  }
  std::vector<double> in_place(count);
  for (std::size_t i = 0; i < count; ++i) in_place[i] = value_of_rank(comm.rank(), i);
  comm.reduce(in_place.data(), in_place.data(), count, DataType::Float64, ReduceOp::Max, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_root = comm.rank() == 0;
    expect(in_place[i] ==
               (is_root ? expected(ReduceOp::Max, ranks, i) : value_of_rank(comm.rank(), i)),
           [] { return "reduce in place"; });
  }
}

void check_unequal_parts(Communicator& comm, std::size_t unit) {
  // One rank has nothing, and the others more and more.
  std::vector<std::size_t> counts;
  for (int r = 0; r < comm.size(); ++r) counts.push_back(unit * static_cast<std::size_t>(r));
  std::vector<std::int32_t> mine(counts[static_cast<std::size_t>(comm.rank())]);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value_of_rank(comm.rank(), i);
  std::vector<std::int32_t> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), -1);
  comm.all_gather(mine.data(), all.data(), counts, DataType::Int32);
  const auto* at = all.data();
  for (int r = 0; r < comm.size(); ++r) {
    for (std::size_t i = 0; i < counts[static_cast<std::size_t>(r)]; ++i, ++at)
      expect(*at == value_of_rank(r, i), [&] { return fmt::format("{} of rank {}", i, r); });
  }
}

void check_others(Communicator& comm, std::size_t count) {
  const int ranks = comm.size();
  const auto width = static_cast<std::size_t>(ranks);
  for (int root = 0; root < ranks; ++root) {
    std::vector<std::int32_t> data(count, -1);
    if (comm.rank() == root) std::iota(data.begin(), data.end(), root);
    comm.broadcast(std::span(data), root);
    for (std::size_t i = 0; i < count; ++i)
      expect(data[i] == root + static_cast<int>(i),
             [&] { return fmt::format("broadcast from {}", root); });
  }

  std::vector<float> mine(count);
  for (std::size_t i = 0; i < count; ++i)
    mine[i] = static_cast<float>(value_of_rank(comm.rank(), i));
  std::vector<float> all(count * width);
  comm.all_gather(mine.data(), all.data(), count, DataType::Float32);
  for (std::size_t r = 0; r < width; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      expect(all[r * count + i] == static_cast<float>(value_of_rank(static_cast<int>(r), i)),
             [&] { return fmt::format("all_gather: {} of rank {}", i, r); });
    }
  }

  std::vector<std::int64_t> wide(count * width);
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = value_of_rank(comm.rank(), i);
  std::vector<std::int64_t> part(count);
  comm.reduce_scatter(wide.data(), part.data(), count, DataType::Int64, ReduceOp::Sum);
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(comm.rank()) * count + i;
    expect(part[i] == expected(ReduceOp::Sum, ranks, index),
           [&] { return fmt::format("reduce_scatter: element {}", i); });
  }
  check_to_and_from_one(comm, count);
  comm.barrier();
}

void check_everything(GangContext& gang, HostOptions options, std::size_t most = 1000003) {
  auto comm = make_host_communicator(gang, std::move(options));
  for (std::size_t count : {0, 1, 2, 3, 17, 1000, 1025, 4099}) {
    check_every_type(*comm, count);
    check_others(*comm, count);
  }
  for (std::size_t count : {std::size_t{65537}, most})
    check_all_reduce<float>(*comm, DataType::Float32, ReduceOp::Average, count);
  check_others(*comm, 20001);
  for (std::size_t unit : {0, 1, 77, 20001}) check_unequal_parts(*comm, unit);
}

}  // namespace

TEST_CASE("collectives of one to eight ranks on a node equal plain loops", "[train][collective]") {
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  CHECK(failures(ForkedGang::on_one_node(ranks).run(
            [](GangContext& gang) { check_everything(gang, {}); })) == "");
}

TEST_CASE("many small chunks give what one big chunk gives", "[train][collective]") {
  const int ranks = GENERATE(2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run(
            [](GangContext& gang) { check_everything(gang, small_chunks(), 100003); })) == "");
}

TEST_CASE("collectives over several nodes equal plain loops", "[train][collective][ring]") {
  const auto [ranks, nodes] = GENERATE(table<int, int>({{2, 2}, {4, 2}, {5, 3}, {3, 3}}));
  CHECK(failures(ForkedGang::on_nodes(ranks, nodes).run([](GangContext& gang) {
          check_everything(gang, {});
        })) == "");
}

TEST_CASE("what ranks gather in unequal parts is as unequal on all of them",
          "[train][collective][ring]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_nodes(2, 2));
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_host_communicator(context);
    const std::vector<float> in(5);
    std::vector<float> out(7);
    const auto mine =
        comm->rank() == 0 ? std::vector<std::size_t>{2, 5} : std::vector<std::size_t>{5, 2};
    comm->all_gather(in.data(), out.data(), mine, DataType::Float32);
  });
  for (const auto& outcome : outcomes) {
    CHECK_THAT(outcome.message, Catch::Contains("the ranks made different calls") &&
                                    Catch::Contains("all_gather of 7 float32 in unequal parts"));
  }
}

TEST_CASE("what cannot be gathered, reduced or scattered is refused and ends nothing",
          "[train][collective]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          std::vector<float> data(4);
          auto* some = data.data();
          constexpr auto kFloat = DataType::Float32;
          const auto refused = [](const auto& call, const std::string& why) {
            try {
              call();
            } catch (const std::invalid_argument& error) {
              return expect(error.what() == why, std::string(error.what()));
            }
            expect(false, why);
          };
          const std::vector<std::size_t> one{4}, two{2, 2};
          refused([&] { comm->all_gather(some, some, one, kFloat); },
                  "all_gather: 1 counts for 2 ranks; give one for each rank");
          refused([&] { comm->all_gather(some, nullptr, two, kFloat); },
                  "all_gather: a null buffer for 4 elements of float32");
          refused([&] { comm->reduce(some, some, 4, kFloat, ReduceOp::Sum, 2); },
                  "reduce: root 2 is none of the ranks 0 to 1");
          refused([&] { comm->reduce(some, nullptr, 4, kFloat, ReduceOp::Sum, comm->rank()); },
                  "reduce: a null buffer for 4 elements of float32");
          refused([&] { comm->gather(some, nullptr, 2, kFloat, comm->rank()); },
                  "gather: a null buffer for 2 elements of float32");
          refused([&] { comm->gather(some, some, 2, kFloat, -1); },
                  "gather: root -1 is none of the ranks 0 to 1");
          refused([&] { comm->scatter(nullptr, some, 2, kFloat, comm->rank()); },
                  "scatter: a null buffer for 2 elements of float32");
          std::vector<std::int64_t> whole(2);
          refused(
              [&] {
                comm->reduce(whole.data(), whole.data(), 2, DataType::Int64, ReduceOp::Average, 0);
              },
              "reduce: an average of int64 would be rounded; sum, and divide as you need it");
          comm->barrier();
        })) == "");
}

TEST_CASE("buffers that the communicator allocated are reduced in place, whole or in part",
          "[train][collective]") {
  const int ranks = GENERATE(1, 2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          auto comm = make_host_communicator(gang, small_chunks());
          constexpr std::size_t kCount = 10007;
          for (int round = 0; round < 3; ++round) {
            auto buffer = comm->allocate(kCount * sizeof(float));
            if (gang.size() == 1) {
              expect(buffer == nullptr, "no shared buffer for one rank");
              return;
            }
            auto* data = static_cast<float*>(buffer.get());
            for (std::size_t from : {std::size_t{0}, std::size_t{5}}) {
              for (std::size_t i = 0; i < kCount; ++i)
                data[i] = static_cast<float>(value_of_rank(comm->rank(), i));
              comm->all_reduce(std::span(data + from, kCount - from));
              for (std::size_t i = 0; i < kCount; ++i) {
                const int right = i < from ? value_of_rank(comm->rank(), i)
                                           : expected(ReduceOp::Sum, comm->size(), i);
                expect(data[i] == static_cast<float>(right),
                       [&] { return fmt::format("element {} of the shared buffer", i); });
              }
            }
            // Where one rank's buffer is its own, all take the other way.
            std::vector<float> own(data, data + kCount);
            auto* used = comm->rank() == 0 ? own.data() : data;
            for (std::size_t i = 0; i < kCount; ++i) used[i] = 1;
            comm->all_reduce(std::span(used, kCount));
            expect(used[kCount - 1] == static_cast<float>(comm->size()), "a sum of ones");
          }
        })) == "");
}

TEST_CASE("all ranks get the same bits where the order of a sum matters", "[train][collective]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(4), ForkedGang::on_nodes(5, 3));
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_host_communicator(context);
          std::vector<double> data(3001);
          for (std::size_t i = 0; i < data.size(); ++i)
            data[i] =
                std::sin(static_cast<double>(i * 31 + static_cast<std::size_t>(comm->rank()))) *
                1e3;
          comm->all_reduce(std::span(data), ReduceOp::Average);
          std::vector<double> all(data.size() * static_cast<std::size_t>(comm->size()));
          comm->all_gather(data.data(), all.data(), data.size(), DataType::Float64);
          for (int r = 0; r < comm->size(); ++r) {
            const auto* theirs = all.data() + data.size() * static_cast<std::size_t>(r);
            expect(std::memcmp(theirs, data.data(), data.size() * sizeof(double)) == 0,
                   fmt::format("the same bits as rank {}", r));
          }
        })) == "");
}

TEST_CASE("a NaN of one rank reaches all in min and max", "[train][collective]") {
  CHECK(failures(ForkedGang::on_one_node(3).run([](GangContext& gang) {
          auto comm = make_host_communicator(gang);
          for (auto op : {ReduceOp::Min, ReduceOp::Max}) {
            for (int from = 0; from < 3; ++from) {
              float x = comm->rank() == from ? std::nanf("") : 1.0f;
              comm->all_reduce(std::span(&x, 1), op);
              expect(std::isnan(x), "NaN");
            }
          }
        })) == "");
}
