#include "output/mlflow/mlflow_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace troupe::tune {
namespace {

constexpr std::size_t kMostName = 250;
constexpr std::size_t kSumBytes = 8;
constexpr std::string_view kPlain = "-: ";

bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || ('A' <= c && c <= 'F'); }
bool is_letter(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); }

/// Whether the character at this place stands for itself in the key.
bool is_kept(std::string_view name, std::size_t at) {
  const auto rest = name.substr(at);
  const bool begins_part = at == 0 || name[at - 1] == '/';
  switch (rest.front()) {
    case '_':
      return rest.size() < 4 || rest[1] != 'x' || !is_hex(rest[2]) || !is_hex(rest[3]);
    case '/':
      return !begins_part && rest.size() > 1;
    case '.': {
      const auto part = rest.substr(0, rest.find('/'));
      const bool is_folder = part == "." || part == ".." || (at == 0 && part.starts_with(".."));
      return !begins_part || !is_folder;
    }
    default:
      return is_letter(rest.front()) || is_digit(rest.front()) ||
             kPlain.find(rest.front()) != std::string_view::npos;
  }
}

std::string escape_of(char c) { return fmt::format("_x{:02X}", static_cast<unsigned char>(c)); }

std::string sum_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  EVP_Digest(text.data(), text.size(), sum.data(), nullptr, EVP_sha256(), nullptr);
  std::string digits;
  for (std::size_t i = 0; i < kSumBytes; ++i) digits += fmt::format("{:02x}", sum.at(i));
  return digits;
}

}  // namespace

std::string mlflow_name(std::string_view name) {
  if (name.empty()) return escape_of('_');  // which no other name becomes
  std::string key;
  for (std::size_t at = 0; at < name.size(); ++at)
    key += is_kept(name, at) ? std::string(1, name[at]) : escape_of(name[at]);
  if (key.size() <= kMostName) return key;
  const auto end = "_h" + sum_of(key);
  return key.substr(0, kMostName - end.size()) + end;
}

}  // namespace troupe::tune
