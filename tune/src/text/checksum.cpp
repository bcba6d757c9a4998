#include "text/checksum.hpp"

#include <fmt/format.h>
#include <boost/crc.hpp>

namespace troupe::tune {
namespace {

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

constexpr std::string_view kKey = R"("crc":")";
constexpr std::string_view kEnd = R"("})";
constexpr std::size_t kDigits = 8;
constexpr std::size_t kSize = kKey.size() + kDigits + kEnd.size();

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  Crc32c crc;
  crc.process_bytes(data.data(), data.size());
  return crc.checksum();
}

std::string with_checksum(std::string object) {
  object.pop_back();
  if (object.size() > 1) object += ',';
  return fmt::format("{}{}{:08x}{}", object, kKey, crc32c(object), kEnd);
}

std::string_view before_checksum(std::string_view line) {
  return line.substr(0, line.size() - kSize);
}

Checksum look_at_checksum(std::string_view line) {
  if (line.size() <= kSize) return Checksum::None;
  const auto own = line.substr(line.size() - kSize);
  if (!own.starts_with(kKey) || !own.ends_with(kEnd)) return Checksum::None;
  const auto right = fmt::format("{:08x}", crc32c(before_checksum(line)));
  return own.substr(kKey.size(), kDigits) == right ? Checksum::Right : Checksum::Wrong;
}

}  // namespace troupe::tune
