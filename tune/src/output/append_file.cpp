#include "output/append_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw std::runtime_error(fmt::format("cannot write {}: {}", path.string(), std::strerror(error)));
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path) : path_{std::move(path)} {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(path_, errno);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_{std::move(other.path_)}, fd_{std::exchange(other.fd_, -1)} {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

void AppendFile::append(std::string_view record) {
  while (!record.empty()) {
    const auto written = ::write(fd_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, errno);
    record.remove_prefix(static_cast<std::size_t>(written));
  }
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  const auto beside = path.string() + ".new";
  std::filesystem::remove(beside);
  AppendFile(beside).append(content);
  std::filesystem::rename(beside, path);
}

}  // namespace troupe::tune
