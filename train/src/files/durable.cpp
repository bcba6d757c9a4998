#include "files/durable.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "config/name.hpp"
#include "os/unique_fd.hpp"

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

void make_durable(const std::filesystem::path& path) {
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0)
    not_done(fmt::format("cannot make {} durable", in_words(path)), std::strerror(errno));
}

}  // namespace troupe::train
