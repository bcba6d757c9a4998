#include "safetensors/loading.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "files/errors.hpp"

namespace troupe::train::safetensors {

void not_loaded(const std::filesystem::path& path, const std::string& why) {
  not_done(fmt::format("cannot load {}", in_words(path)), why);
}

OpenFile open_to_load(const std::filesystem::path& path) {
  // Without waiting for the writer of a pipe.
  os::UniqueFd in(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!in) not_loaded(path, std::strerror(errno));
  struct stat found {};
  if (::fstat(in.get(), &found) != 0) not_loaded(path, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) not_loaded(path, "it is no file");
  return {.fd = std::move(in), .bytes = static_cast<std::uint64_t>(found.st_size)};
}

}  // namespace troupe::train::safetensors
