#include "workdir/packing.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <regex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "words/refuse.hpp"
#include "workdir/tar.hpp"

namespace troupe::launch {
namespace {

/// -> the end to write to; `read` becomes the other one.
os::UniqueFd make_pipe(os::UniqueFd& read) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    refuse(fmt::format("there is no pipe for tar: {}", std::strerror(errno)));
  read.reset(ends[0]);
  return os::UniqueFd(ends[1]);
}

std::string_view without_line_ends(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

}  // namespace

Packing::Packing(std::vector<std::string> arguments) {
  const auto archive = make_pipe(archive_), complaints = make_pipe(complaints_);
  pid_ = start_tar(std::move(arguments), archive.get(), complaints.get());
}

Packing::~Packing() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  tar_status(pid_);
}

std::string_view Packing::more() {
  constexpr int kLookMs = 100;
  pollfd readable[]{{archive_.get(), POLLIN, 0}, {complaints_.get(), POLLIN, 0}};
  ::poll(readable, 2, kLookMs);  // a pipe that has ended is -1, and passed over
  if (readable[1].revents != 0) said_ += part_of(complaints_).substr(0, kMostKept - said_.size());
  return readable[0].revents != 0 ? part_of(archive_) : std::string_view();
}

int Packing::end() { return tar_status(std::exchange(pid_, -1)); }

std::string Packing::complaint() const {
  return std::string(without_line_ends(std::string_view(said_).substr(0, kMostComplaint)));
}

std::string Packing::last_line() const {
  if (said_.size() == kMostKept) return {};
  const auto said = without_line_ends(said_);
  return std::string(said.substr(said.rfind('\n') + 1));  // npos + 1 is 0
}

std::string_view Packing::part_of(os::UniqueFd& pipe) {
  const auto size = ::read(pipe.get(), buffer_.data(), buffer_.size());
  if (size > 0) return {buffer_.data(), static_cast<std::size_t>(size)};
  if (size == 0 || errno != EINTR) pipe.reset();
  return {};
}

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

}  // namespace troupe::launch
