#include <troupe/train/communicator.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
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

template <class T>
struct Format {
  static constexpr DataType kType = data_type_of<T>();
  static constexpr double kLargest = std::numeric_limits<T>::max();
  static constexpr double kSmallest = std::numeric_limits<T>::denorm_min();
  static constexpr double kUlpOfOne = std::numeric_limits<T>::epsilon();
};
template <>
struct Format<Float16> {
  static constexpr DataType kType = DataType::Float16;
  static constexpr double kLargest = 65504;
  static constexpr double kSmallest = 0x1p-24;
  static constexpr double kUlpOfOne = 0x1p-10;
};
template <>
struct Format<BFloat16> {
  static constexpr DataType kType = DataType::BFloat16;
  static constexpr double kLargest = 0x1.fep127;
  static constexpr double kSmallest = 0x1p-133;
  static constexpr double kUlpOfOne = 0x1p-7;
};

/// What rank `rank` of `ranks` brings at index i.
using Contribution = std::function<double(int rank, int ranks, std::size_t i)>;

/// What a rank has got: elements `first`, `first + 1`, ... of the average.
template <class T>
struct Means {
  std::vector<T> values;
  std::size_t first = 0;
};

template <class T>
std::vector<T> own_numbers(const Communicator& comm, std::size_t count,
                           const Contribution& numbers) {
  std::vector<T> data(count);
  for (std::size_t i = 0; i < count; ++i) encode(data[i], numbers(comm.rank(), comm.size(), i));
  return data;
}

template <class T>
Means<T> all_reduced(Communicator& comm, std::size_t count, const Contribution& numbers) {
  auto data = own_numbers<T>(comm, count, numbers);
  comm.all_reduce(data.data(), count, Format<T>::kType, ReduceOp::Average);
  return {data};
}

template <class T>
Means<T> reduced_in_place(Communicator& comm, std::size_t count, const Contribution& numbers) {
  const auto buffer = comm.allocate(count * sizeof(T));
  expect(buffer != nullptr, "a shared buffer");
  const auto data = own_numbers<T>(comm, count, numbers);
  auto* shared = static_cast<T*>(buffer.get());
  std::copy(data.begin(), data.end(), shared);
  comm.all_reduce(shared, count, Format<T>::kType, ReduceOp::Average);
  return {{shared, shared + count}};
}

template <class T>
Means<T> reduce_scattered(Communicator& comm, std::size_t count, const Contribution& numbers) {
  const auto all = own_numbers<T>(comm, count * static_cast<std::size_t>(comm.size()), numbers);
  std::vector<T> part(count);
  comm.reduce_scatter(all.data(), part.data(), count, Format<T>::kType, ReduceOp::Average);
  return {part, static_cast<std::size_t>(comm.rank()) * count};
}

/// Empty but on the last rank.
template <class T>
Means<T> reduced_to_last(Communicator& comm, std::size_t count, const Contribution& numbers) {
  const auto data = own_numbers<T>(comm, count, numbers);
  const int last = comm.size() - 1;
  std::vector<T> means(comm.rank() == last ? count : 0);
  comm.reduce(data.data(), means.data(), count, Format<T>::kType, ReduceOp::Average, last);
  return {means};
}

/// Each addition, the division and each step between nodes may round by half a unit in the last
/// place of a partial sum, which is at most the sum of the magnitudes.
template <class T>
void check_mean(const Communicator& comm, const Contribution& numbers, std::size_t i, double got) {
  long double sum = 0;
  long double magnitude = 0;
  for (int r = 0; r < comm.size(); ++r) {
    T number;
    encode(number, numbers(r, comm.size(), i));
    sum += static_cast<long double>(decode(number));
    magnitude += std::fabs(static_cast<long double>(decode(number)));
  }
  const auto exact = sum / comm.size();
  // A mean below the normal numbers is rounded to a multiple of the smallest one.
  const auto tolerance = magnitude * Format<T>::kUlpOfOne + Format<T>::kSmallest / 2;
  expect(std::isfinite(got) && std::fabs(got - exact) <= tolerance, [&] {
    return fmt::format("average of {} on {} ranks: element {} is {}, not {}",
                       name_of(Format<T>::kType), comm.size(), i, got, static_cast<double>(exact));
  });
}

template <class T>
void check_means(const Communicator& comm, const Means<T>& means, const Contribution& numbers) {
  for (std::size_t i = 0; i < means.values.size(); ++i)
    check_mean<T>(comm, numbers, means.first + i, decode(means.values[i]));
}

template <class T>
void check_same_bits(Communicator& comm, const std::vector<T>& mine) {
  auto others = mine;
  comm.broadcast(others.data(), others.size(), Format<T>::kType, 0);
  expect(std::memcmp(others.data(), mine.data(), mine.size() * sizeof(T)) == 0,
         "the same bits as rank 0");
}

bool is_on_one_node(GangContext& gang) { return gang.node_count() == 1; }

template <class T>
void check_averages(GangContext& gang, Communicator& comm, const Contribution& numbers) {
  // One element; as many as everybody reads from everybody; more than a chunk.
  for (std::size_t count : {1, 1000, 5003}) {
    const auto means = all_reduced<T>(comm, count, numbers);
    check_means(comm, means, numbers);
    check_same_bits(comm, means.values);
    check_means(comm, reduce_scattered<T>(comm, count, numbers), numbers);
    check_means(comm, reduced_to_last<T>(comm, count, numbers), numbers);
    if (!is_on_one_node(gang)) continue;
    check_means(comm, reduced_in_place<T>(comm, count, numbers), numbers);
  }
}

/// Means near the largest number of T at index 0 and among ordinary ones, in every order of signs.
template <class T>
double large(int rank, int ranks, std::size_t i) {
  const double most = Format<T>::kLargest;
  switch (i % 7) {
    case 0:
      return most;
    case 1:
      return -most;
    case 2:
      return rank == 0 ? 1 : most;
    case 3:
      return rank % 2 == 0 ? most : -most;
    case 4:
      return rank + 1 < ranks ? most : -most;
    case 5:
      return rank < (ranks + 1) / 2 ? most : -most;
    default:
      return static_cast<double>(rank + static_cast<int>(i % 5));
  }
}

template <class T>
void check_largest(GangContext& gang) {
  auto comm = make_host_communicator(gang, small_chunks());
  check_averages<T>(gang, *comm, large<T>);
}

/// The numbers of all ranks follow from the index, so that each rank knows the exact mean.
double ordinary(int rank, int /*ranks*/, std::size_t i) {
  std::minstd_rand random(static_cast<unsigned>(i * 64 + static_cast<std::size_t>(rank) + 1));
  random.discard(3);
  return std::uniform_real_distribution<double>(-10, 10)(random);
}

template <class T>
void check_ordinary(GangContext& gang) {
  auto comm = make_host_communicator(gang, small_chunks());
  check_averages<T>(gang, *comm, ordinary);
}

template <class T>
void check_smallest(GangContext& gang) {
  auto comm = make_host_communicator(gang, small_chunks());
  const auto means = all_reduced<T>(*comm, 5003, [](int, int, std::size_t i) {
    return i % 100 == 0 ? Format<T>::kLargest : Format<T>::kSmallest;
  });
  expect(decode(means.values[1]) == Format<T>::kSmallest, "the smallest number of the type");
  expect(std::isfinite(decode(means.values[100])), "a finite mean beside it");
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// With an infinity or a NaN of one rank, or opposite infinities of two, among large numbers.
template <class T>
double special(int rank, int ranks, std::size_t i) {
  switch (i % 5) {
    case 0:
      return rank == ranks - 1 ? kInfinity : Format<T>::kLargest;
    case 1:
      return rank == ranks - 1 ? -kInfinity : Format<T>::kLargest;
    case 2:
      return rank == 0 ? std::nan("") : Format<T>::kLargest;
    case 3:
      return rank == 0 ? kInfinity : -kInfinity;
    default:
      return Format<T>::kLargest;
  }
}

void check_special(std::size_t i, double got) {
  const auto right = [&] {
    switch (i % 5) {
      case 0:
        return got == kInfinity;
      case 1:
        return got == -kInfinity;
      case 2:
      case 3:
        return std::isnan(got);
      default:
        return std::isfinite(got);
    }
  };
  expect(right(), [&] { return fmt::format("element {} is {}", i, got); });
}

template <class T>
void check_not_finite(GangContext& gang) {
  auto comm = make_host_communicator(gang, small_chunks());
  const auto check = [](const Means<T>& means) {
    for (std::size_t i = 0; i < means.values.size(); ++i)
      check_special(means.first + i, decode(means.values[i]));
  };
  for (std::size_t count : {1, 1000, 5003}) {
    check(all_reduced<T>(*comm, count, special<T>));
    check(reduce_scattered<T>(*comm, count, special<T>));
    check(reduced_to_last<T>(*comm, count, special<T>));
    if (is_on_one_node(gang)) check(reduced_in_place<T>(*comm, count, special<T>));
  }
}

/// A number from which the next one of T is two away, and three that together are more than half of
/// that: they are lost wherever the sum of fewer is rounded to T.
constexpr double kSmall = 0.40625;
template <class T>
double large_and_small(int rank, int /*ranks*/, std::size_t /*i*/) {
  return rank == 0 ? 2 / Format<T>::kUlpOfOne : kSmall;
}

template <class T>
void check_summed_in_float(GangContext& gang) {
  auto comm = make_host_communicator(gang, small_chunks());
  T mean;
  encode(mean, (2 / Format<T>::kUlpOfOne + 3 * kSmall) / 4);
  const auto check = [&](const Means<T>& means) {
    for (const auto& got : means.values) {
      expect(decode(got) == decode(mean),
             [&] { return fmt::format("{} is not {}", decode(got), decode(mean)); });
    }
  };
  for (std::size_t count : {1, 1000, 5003}) {
    check(all_reduced<T>(*comm, count, large_and_small<T>));
    check(reduce_scattered<T>(*comm, count, large_and_small<T>));
    check(reduced_to_last<T>(*comm, count, large_and_small<T>));
    check(reduced_in_place<T>(*comm, count, large_and_small<T>));
  }
}

std::vector<ForkedGang> gangs_to_average() {
  return {ForkedGang::on_one_node(2), ForkedGang::on_one_node(3), ForkedGang::on_one_node(4),
          ForkedGang::on_nodes(2, 2), ForkedGang::on_nodes(3, 3), ForkedGang::on_nodes(4, 4),
          ForkedGang::on_nodes(3, 2), ForkedGang::on_nodes(4, 2), ForkedGang::on_nodes(5, 3)};
}

}  // namespace

TEMPLATE_TEST_CASE("an average of finite numbers is finite near the largest number of its type",
                   "[train][collective][average]", Float16, BFloat16, float, double) {
  const auto gang = GENERATE(from_range(gangs_to_average()));
  CHECK(failures(gang.run(check_largest<TestType>)) == "");
}

TEMPLATE_TEST_CASE("an average of ordinary numbers is their mean but for the rounding of its steps",
                   "[train][collective][average]", Float16, BFloat16, float, double) {
  const auto gang = GENERATE(from_range(gangs_to_average()));
  CHECK(failures(gang.run(check_ordinary<TestType>)) == "");
}

TEMPLATE_TEST_CASE("an average of the smallest numbers of a type is exact beside a large one",
                   "[train][collective][average]", Float16, BFloat16, float, double) {
  const auto gang = GENERATE(from_range(gangs_to_average()));
  CHECK(failures(gang.run(check_smallest<TestType>)) == "");
}

TEMPLATE_TEST_CASE("numbers of 16 bits are summed in float", "[train][collective][average]",
                   Float16, BFloat16) {
  CHECK(failures(ForkedGang::on_one_node(4).run(check_summed_in_float<TestType>)) == "");
}

TEMPLATE_TEST_CASE("an infinity or a NaN among the numbers of an average is in the average",
                   "[train][collective][average]", Float16, BFloat16, float, double) {
  const auto gang = GENERATE(from_range(gangs_to_average()));
  CHECK(failures(gang.run(check_not_finite<TestType>)) == "");
}
