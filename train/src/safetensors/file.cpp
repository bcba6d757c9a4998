#include "safetensors/file.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "os/files/read_write.hpp"

namespace troupe::train::safetensors {

File::File(std::filesystem::path path) : path_(std::move(path)), in_(open_to_load(path_)) {
  loaded(path_, [&] {
    std::string head(std::min<std::uint64_t>(in_.bytes, kLengthBytes), '\0');
    read_at(0, head.data(), head.size());
    head.resize(header_length(head, in_.bytes));
    read_at(kLengthBytes, head.data(), head.size());
    values_at_ = kLengthBytes + head.size();
    header_ = parse_header(head, in_.bytes - values_at_);
  });
}

void File::read(const Entry& entry, void* values) const {
  read_at(values_at_ + entry.begin, values, entry.bytes());
}

void File::read_at(std::uint64_t at, void* into, std::uint64_t count) const {
  std::uint64_t got = 0;
  try {
    got = os::read_at(in_.fd.get(), at, into, count);
  } catch (const std::system_error& error) {
    not_loaded(path_, error.code().message());
  }
  if (got != count) not_loaded(path_, "it was cut off while it was read");
}

}  // namespace troupe::train::safetensors
