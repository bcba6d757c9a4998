#include "text/checksum.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace checksum_test {

using namespace troupe::tune;

TEST_CASE("the checksum is CRC-32C", "[tune][text]") {
  CHECK(crc32c("123456789") == 0xE3069283u);            // the check value of its catalogue
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);  // RFC 3720, appendix B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

TEST_CASE("a line has its checksum as its last value, and each changed byte is found",
          "[tune][text]") {
  const auto line = with_checksum(R"({"t":3,"loss":0.25})");
  CHECK(line.starts_with(R"({"t":3,"loss":0.25,"crc":")"));
  CHECK(look_at_checksum(line) == Checksum::Right);
  CHECK(before_checksum(line) == R"({"t":3,"loss":0.25,)");
  CHECK(look_at_checksum(with_checksum("{}")) == Checksum::Right);
  for (std::size_t at = 0; at < line.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto changed = line;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      CHECK(look_at_checksum(changed) != Checksum::Right);
    }
    CHECK(look_at_checksum(line.substr(0, at) + line.substr(at + 1)) != Checksum::Right);
    CHECK(look_at_checksum(line.substr(at + 1)) != Checksum::Right);
  }
  CHECK(look_at_checksum(R"({"t":3})") == Checksum::None);
  CHECK(look_at_checksum("") == Checksum::None);
}

}  // namespace checksum_test
