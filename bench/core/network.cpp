// Large values between hosts.
#include "cases.hpp"

namespace troupe::bench {

void network(const Report& report) {
  constexpr auto kWhy = "not there yet: a value takes at most 255 MiB and goes through one frame";
  if (report.wants("transfer_1GiB_GBps")) report.missing("transfer_1GiB_GBps", "GB/s", kWhy);
  if (report.wants("broadcast_1GiB_to_4_s")) report.missing("broadcast_1GiB_to_4_s", "s", kWhy);
}

}  // namespace troupe::bench
