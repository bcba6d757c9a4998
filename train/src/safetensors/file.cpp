#include "safetensors/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/name.hpp"
#include "files/durable.hpp"
#include "os/files/file_content.hpp"
#include "os/files/read_write.hpp"

namespace troupe::train::safetensors {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kMostNamed = 5;

[[noreturn]] void fail(const fs::path& path, const std::string& why) {
  not_done(fmt::format("cannot load {}", in_words(path)), why);
}

void read_at(const fs::path& path, int fd, std::uint64_t at, void* into, std::uint64_t count) {
  std::uint64_t got = 0;
  try {
    got = os::read_at(fd, at, into, count);
  } catch (const std::system_error& error) {
    fail(path, error.code().message());
  }
  if (got != count) fail(path, "it was cut off while it was read");
}

/// Without waiting for the writer of a pipe.
os::UniqueFd opened(const fs::path& path) {
  os::UniqueFd in(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!in) fail(path, std::strerror(errno));
  return in;
}

/// Throws for what is no regular file.
std::uint64_t size_of_file(const fs::path& path, int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) fail(path, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) fail(path, "it is no file");
  return static_cast<std::uint64_t>(found.st_size);
}

/// Runs `read`, whose errors get the file's name.
template <class Read>
void readable(const fs::path& path, Read read) {
  try {
    read();
  } catch (const FormatError& error) {
    fail(path, error.what());
  } catch (const std::bad_alloc&) {
    fail(path, "there is not enough memory for its header");
  }
}

[[noreturn]] void fail_folder(const fs::path& folder) {
  std::vector<std::string> others;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end && !ignored;
       at.increment(ignored)) {
    if (at->path().extension() == ".safetensors")
      others.push_back(config::printable(at->path().filename().string()));
  }
  std::ranges::sort(others);
  if (others.size() > kMostNamed) others.resize(kMostNamed);
  fail(folder, fmt::format("the folder has neither {} nor {}{}", kFile, kIndex,
                           others.empty() ? std::string()
                                          : fmt::format("; name a file of it, as {}",
                                                        fmt::join(others, ", "))));
}

/// The file or the index that a path stands for.
fs::path found_at(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  for (const auto* name : {kFile, kIndex}) {
    if (fs::exists(path / name, error)) return path / name;
  }
  fail_folder(path);
}

}  // namespace

File::File(fs::path path) : path_(std::move(path)), in_(opened(path_)) {
  const auto size = size_of_file(path_, in_.get());
  readable(path_, [&] {
    std::string head(std::min<std::uint64_t>(size, kLengthBytes), '\0');
    read_at(path_, in_.get(), 0, head.data(), head.size());
    head.resize(header_length(head, size));
    read_at(path_, in_.get(), kLengthBytes, head.data(), head.size());
    values_at_ = kLengthBytes + head.size();
    header_ = parse_header(head, size - values_at_);
  });
}

void File::read(const Entry& entry, void* values) const {
  read_at(path_, in_.get(), values_at_ + entry.begin, values, entry.bytes());
}

Source::Source(const fs::path& path) : path_(found_at(path)) {
  if (path_.extension() == ".json") {
    open_index();
    return;
  }
  const auto& file = files_.emplace_back(path_);
  for (const auto& [name, entry] : file.header().entries) tensors_[name] = {&file, &entry};
}

void Source::open_index() {
  const auto in = opened(path_);
  size_of_file(path_, in.get());
  const auto content = os::read_to_end(in.get(), kMostHeaderBytes);
  if (!content.why_not.empty()) fail(path_, content.why_not);
  if (content.bytes.size() > kMostHeaderBytes) fail(path_, "it is too long for an index");
  std::map<std::string, const File*> files;
  readable(path_, [&] {
    for (const auto& [name, file_name] : parse_index(content.bytes)) {
      auto& file = files[file_name];
      if (file == nullptr) file = &files_.emplace_back(path_.parent_path() / file_name);
      const auto found = file->header().entries.find(name);
      if (found == file->header().entries.end())
        fail(path_, fmt::format("its tensor '{}' is not in {}", config::printable(name),
                                config::printable(file_name)));
      tensors_[name] = {file, &found->second};
    }
  });
}

std::map<std::string, std::string> Source::metadata() const {
  std::map<std::string, std::string> all;
  for (const auto& file : files_)
    all.insert(file.header().metadata.begin(), file.header().metadata.end());
  return all;
}

}  // namespace troupe::train::safetensors
