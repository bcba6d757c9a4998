#pragma once

#include <string>

namespace troupe::launch {

/// The name of this machine's network interface that has the address: "lo", "eth0". Empty where none
/// has it, or where it is not an address in digits.
std::string interface_of(const std::string& address);

}  // namespace troupe::launch
