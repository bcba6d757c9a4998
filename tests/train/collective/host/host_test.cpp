#include <troupe/train/communicator.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "support/elements.hpp"
#include "support/forked_gang.hpp"
#include "support/host_options.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// What rank `rank` brings at index i: small whole numbers, so that every type and order gives the
/// exact sum.
int value(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) + 1;
}

int expected(ReduceOp op, int ranks, std::size_t i) {
  int result = value(0, i);
  for (int r = 1; r < ranks; ++r) {
    const int v = value(r, i);
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
  for (std::size_t i = 0; i < count; ++i) encode(data[i], value(comm.rank(), i));
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
  for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<float>(value(comm.rank(), i));
  std::vector<float> all(count * width);
  comm.all_gather(mine.data(), all.data(), count, DataType::Float32);
  for (std::size_t r = 0; r < width; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      expect(all[r * count + i] == static_cast<float>(value(static_cast<int>(r), i)),
             [&] { return fmt::format("all_gather: {} of rank {}", i, r); });
    }
  }

  std::vector<std::int64_t> wide(count * width);
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = value(comm.rank(), i);
  std::vector<std::int64_t> part(count);
  comm.reduce_scatter(wide.data(), part.data(), count, DataType::Int64, ReduceOp::Sum);
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(comm.rank()) * count + i;
    expect(part[i] == expected(ReduceOp::Sum, ranks, index),
           [&] { return fmt::format("reduce_scatter: element {}", i); });
  }
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
                data[i] = static_cast<float>(value(comm->rank(), i));
              comm->all_reduce(std::span(data + from, kCount - from));
              for (std::size_t i = 0; i < kCount; ++i) {
                const int right =
                    i < from ? value(comm->rank(), i) : expected(ReduceOp::Sum, comm->size(), i);
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
