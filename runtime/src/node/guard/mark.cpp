#include "node/guard/mark.hpp"

#include <cstdlib>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace troupe::node {
namespace {

constexpr std::size_t kDigits = 20;  // of 2^64 - 1

/// Of a fresh worker process, to which each page of a library that it runs is news: no more than the language.
std::string digits_of(std::uint64_t process) {
  const auto digits = std::to_string(process);
  return std::string(kDigits - digits.size(), '0') + digits;
}

}  // namespace

std::string make_cookie() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string cookie_entry(const std::string& cookie) { return fmt::format("{}={}", kCookieVariable, cookie); }

std::string process_entry(std::uint64_t process) { return fmt::format("{}={}", kProcessVariable, digits_of(process)); }

void mark_process(std::uint64_t process) {
  const auto digits = digits_of(process);
  char* value = std::getenv(kProcessVariable);
  if (value != nullptr && std::strlen(value) == kDigits) {
    std::memcpy(value, digits.data(), kDigits);
  } else {
    ::setenv(kProcessVariable, digits.c_str(), 1);
  }
}

}  // namespace troupe::node
