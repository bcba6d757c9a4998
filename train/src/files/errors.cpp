#include "files/errors.hpp"

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "config/name.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kMostPathBytes = 4096;

}  // namespace

void not_done(const std::string& what, const std::string& why) {
  throw Error(Failure{.kind = Failure::Kind::Unknown, .message = fmt::format("{}: {}", what, why)});
}

std::string in_words(const std::filesystem::path& path) {
  return config::printable(path.string(), kMostPathBytes);
}

}  // namespace troupe::train
