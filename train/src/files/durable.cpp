#include "files/durable.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/unique_fd.hpp"

namespace troupe::train {

void make_durable(const std::filesystem::path& path) {
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0)
    not_done(fmt::format("cannot make {} durable", in_words(path)), std::strerror(errno));
}

}  // namespace troupe::train
