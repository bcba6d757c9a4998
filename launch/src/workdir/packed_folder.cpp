#include "workdir/packed_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "config/name.hpp"
#include "node/program/digest.hpp"
#include "os/unique_fd.hpp"
#include "store/types.hpp"
#include "words/indented.hpp"
#include "words/refuse.hpp"
#include "words/say.hpp"
#include "workdir/tar.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

/// Of each file in the archive, so that the same content has the same digest; 1980, before which
/// zip files cannot be.
constexpr auto* kSameTime = "--mtime=@315619200";

/// Its lines that are patterns.
std::vector<std::string> patterns_in(const fs::path& file) {
  std::vector<std::string> patterns;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto end = line.find_last_not_of(" \t\r");
    line.resize(end == std::string::npos ? 0 : end + 1);
    // As git has it; tar knows a folder only by its name.
    while (line.size() > 1 && line.back() == '/') line.pop_back();
    if (!line.empty() && line.front() != '#') patterns.push_back(line);
  }
  return patterns;
}

std::vector<std::string> excludes(const fs::path& folder,
                                  const std::vector<std::string>& left_out) {
  std::vector<std::string> arguments{"--exclude=.git", "--exclude=__pycache__"};
  for (const auto& pattern : patterns_in(folder / ".troupeignore"))
    arguments.push_back("--exclude=" + pattern);
  std::error_code ignored;
  for (const auto& path : left_out) {
    const auto within = fs::weakly_canonical(path, ignored)
                            .lexically_relative(fs::weakly_canonical(folder, ignored));
    if (within.empty() || within == "." || *within.begin() == "..") continue;
    // Anchored, and no pattern: this one alone. What follows of tar's options is anchored too.
    arguments.insert(arguments.end(),
                     {"--anchored", "--no-wildcards", "--exclude=./" + within.string()});
  }
  return arguments;
}

/// Of the files below it. What cannot be read, or goes meanwhile, is not counted.
std::uint64_t size_below(const fs::path& folder) {
  std::uint64_t size = 0;
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator
           entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    if (!entry->is_regular_file(ignored) || entry->is_symlink(ignored)) continue;
    const auto bytes = entry->file_size(ignored);
    if (!ignored) size += bytes;
  }
  return size;
}

/// What takes most in it and is not left out by its name, for the error.
std::string largest_in(const fs::path& folder) {
  auto unsent = patterns_in(folder / ".troupeignore");
  unsent.insert(unsent.end(), {".git", "__pycache__"});
  std::vector<std::pair<std::uint64_t, std::string>> sizes;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    auto name = entry->path().filename().string();
    if (std::ranges::find(unsent, name) != unsent.end() || entry->is_symlink(ignored)) continue;
    const bool is_folder = entry->is_directory(ignored);
    const auto size = is_folder                         ? size_below(entry->path())
                      : entry->is_regular_file(ignored) ? entry->file_size(ignored)
                                                        : 0;
    sizes.emplace_back(ignored ? 0 : size, std::move(name));
  }
  std::ranges::sort(sizes, std::greater());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, sizes.size()); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", config::printable(sizes[i].second),
                        store::format_bytes(sizes[i].first));
  }
  return text;
}

/// tar as it packs: its archive and its complaints come through pipes.
class Packing {
 public:
  explicit Packing(std::vector<std::string> arguments) {
    const auto archive = make(archive_), complaints = make(complaints_);
    pid_ = start_tar(std::move(arguments), archive.get(), complaints.get());
  }
  /// Ends it, where it still runs.
  ~Packing() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    tar_status(pid_);
  }
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  /// Some more of the archive; empty: none within 100 ms, or no more at all.
  std::string_view more() {
    constexpr int kLookMs = 100;
    pollfd readable[]{{archive_.get(), POLLIN, 0}, {complaints_.get(), POLLIN, 0}};
    ::poll(readable, 2, kLookMs);  // a pipe that has ended is -1, and passed over
    if (readable[1].revents != 0) {
      const auto said = part_of(complaints_);
      complaint_ += said.substr(0, kMostComplaint);
      last_said_ += said;
      last_said_.erase(0, last_said_.size() - std::min(kMostLine, last_said_.size()));
    }
    return readable[0].revents != 0 ? part_of(archive_) : std::string_view();
  }
  bool has_more() const { return archive_ || complaints_; }
  /// Once there is no more. -> as tar_status()
  int end() { return tar_status(std::exchange(pid_, -1)); }
  /// What it said, without line ends behind it.
  std::string complaint() const {
    return complaint_.substr(0, std::min(kMostComplaint, complaint_.find_last_not_of('\n') + 1));
  }
  /// The last line that it said; empty where that is too long.
  std::string last_line() const {
    const auto said = last_said_.substr(0, last_said_.find_last_not_of('\n') + 1);
    const auto before = said.rfind('\n');
    if (before != std::string::npos) return said.substr(before + 1);
    return last_said_.size() < kMostLine ? said : std::string();
  }

 private:
  static constexpr std::size_t kMostComplaint = 2000;
  static constexpr std::size_t kMostLine = 200;

  static os::UniqueFd make(os::UniqueFd& read) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      refuse(fmt::format("there is no pipe for tar: {}", std::strerror(errno)));
    read.reset(ends[0]);
    return os::UniqueFd(ends[1]);
  }
  std::string_view part_of(os::UniqueFd& pipe) {
    const auto size = ::read(pipe.get(), buffer_.data(), buffer_.size());
    if (size > 0) return {buffer_.data(), static_cast<std::size_t>(size)};
    if (size == 0 || errno != EINTR) pipe.reset();
    return {};
  }

  os::UniqueFd archive_, complaints_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
  std::string complaint_, last_said_;
  pid_t pid_ = -1;
};

/// Of the archive that tar would write, which reads no file where it goes to /dev/null. Empty: tar
/// does not tell, or it is to be given up.
std::optional<std::uint64_t> size_packed(std::vector<std::string> arguments,
                                         const std::function<bool()>& give_up) {
  arguments.insert(arguments.end(), {"-cf", "/dev/null", "--totals", "."});
  Packing packing(std::move(arguments));
  while (packing.has_more()) {
    if (give_up && give_up()) return {};
    packing.more();
  }
  if (packing.end() != 0) return {};
  // "Total bytes written: 10240 (10KiB, 73MiB/s)", in the language of the user.
  const auto line = packing.last_line();
  const std::regex total(R"([^0-9]*([0-9]+) \([^()]*/s\))");
  std::smatch found;
  std::uint64_t size = 0;
  if (!std::regex_match(line, found, total)) return {};
  const auto digits = found[1].str();
  const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), size).ec;
  return error == std::errc() ? std::optional(size) : std::nullopt;
}

[[noreturn]] void refuse_large(const std::string& folder, std::uint64_t most) {
  refuse(
      fmt::format("--workdir '{}' has more than {}, of which most are in {}: name what is not "
                  "needed in its .troupeignore, or put it where each machine has it",
                  config::printable(folder), store::format_bytes(most), largest_in(folder)));
}

}  // namespace

PackedFolder pack_folder(const std::string& folder, const std::vector<std::string>& left_out,
                         std::uint64_t most, const std::function<bool()>& give_up) {
  if (std::error_code ignored; !fs::is_directory(folder, ignored)) {
    refuse(fmt::format("--workdir '{}' is no folder on this machine", config::printable(folder)));
  }
  auto arguments = excludes(folder, left_out);
  arguments.insert(arguments.end(), {"--sort=name", kSameTime, "--owner=0", "--group=0",
                                     "--numeric-owner", "-C", folder});
  if (size_packed(arguments, give_up).value_or(0) > most) refuse_large(folder, most);
  arguments.insert(arguments.end(), {"-cf", "-", "."});
  Packing packing(std::move(arguments));
  PackedFolder packed;
  node::Sha256 sha;
  while (packing.has_more()) {
    if (give_up && give_up()) return {};
    const auto part = packing.more();
    packed.archive += part;
    sha.update(part.data(), part.size());
    if (packed.archive.size() > most) refuse_large(folder, most);  // it has grown meanwhile
  }
  const int status = packing.end();
  const auto complaint = packing.complaint();
  if (status != 0 && status != 1) {
    refuse(
        fmt::format("--workdir '{}' cannot be packed: make readable what tar names, or name it "
                    "in its .troupeignore:{}",
                    config::printable(folder), indented(complaint)));
  }
  if (!complaint.empty()) say(complaint + "\n");
  packed.digest = node::to_hex(sha.finish());
  return packed;
}

}  // namespace troupe::launch
