// Values that are put and got: small ones, and 100 MiB.
#include <cstring>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "cases.hpp"

namespace troupe::bench {
namespace {

/// A string is copied into the store and, by get(), out of it, as the peer's; an Array is looked at
/// where it lies.
void large(const Report& report) {
  if (!report.wants_any(
          {"memcpy_100MiB_GBps", "put_100MiB_GBps", "get_100MiB_GBps", "get_100MiB_per_s"}))
    return;
  const std::string big(static_cast<std::size_t>(sized(report, 100, 1)) << 20, 'x');
  const auto gigabytes = static_cast<double>(big.size()) / 1e9;
  std::string copy(big.size(), ' ');
  report.rate("memcpy_100MiB_GBps", "GB/s", gigabytes,
              [&] { std::memcpy(copy.data(), big.data(), big.size()); });
  report.rate("put_100MiB_GBps", "GB/s", gigabytes, [&] { put(big); });
  const auto ref = put(big);
  report.rate("get_100MiB_GBps", "GB/s", gigabytes, [&] { ref.get(); });
  const auto array = put(Array<char>(std::vector<char>(big.begin(), big.end())));
  constexpr int kGets = 1000;
  report.rate("get_100MiB_per_s", "1/s", kGets, [&] {
    for (int i = 0; i < kGets; ++i) array.get();
  });
}

}  // namespace

void values(const Report& report) {
  const int count = sized(report, 1000, 50);
  report.rate("put_small", "1/s", count, [&] {
    for (int i = 0; i < count; ++i) put(i);
  });
  const auto seven = put(7);
  report.rate("get_small", "1/s", count, [&] {
    for (int i = 0; i < count; ++i) seven.get();
  });
  large(report);
}

}  // namespace troupe::bench
