#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>

#include <troupe/errors.hpp>

#include "admin.hpp"
#include "config/token.hpp"
#include "doctor/finding.hpp"
#include "os/unique_fd.hpp"
#include "store/memory/spill.hpp"
#include "store/types.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::uint64_t kLeastSpillBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastStateBytes = std::uint64_t{64} << 20;

/// The folder itself, or the one in which the first missing folder above it would be made.
fs::path existing_part(const std::string& folder) {
  auto there = fs::absolute(folder);
  std::error_code error;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  return there;
}

/// Nothing where neither a home directory nor $XDG_STATE_HOME is known.
std::optional<std::string> state_folder() try {
  return config::state_directory();
} catch (const Error&) {
  return std::nullopt;
}

/// Nothing is made that was not there.
std::string why_not_writable(const std::string& folder) {
  const auto there = existing_part(folder);
  std::error_code error;
  if (!fs::is_directory(there, error)) return fmt::format("{} is no folder", there.string());
  auto pattern = (there / "troupe-doctor-XXXXXX").string();
  const os::UniqueFd file(::mkstemp(pattern.data()));
  if (!file) return fmt::format("{} cannot be written: {}", there.string(), std::strerror(errno));
  ::unlink(pattern.c_str());
  return {};
}

/// What of Troupe listens there; nothing: something else.
std::optional<Neighbour> troupe_on(std::uint16_t port, const std::string& token_file) {
  const transport::Endpoint at{.host = kLoopback, .port = port, .unix_name = {}};
  try {
    const auto token = config::find_token(token_file);
    return troupe_at(at, &token);
  } catch (const std::exception&) {
    return troupe_at(at, nullptr);  // there is no token here
  }
}

}  // namespace

void check_port(Findings& findings, std::uint16_t port, const std::optional<Answer>& answer,
                const std::string& token_file) {
  const auto what = fmt::format("port {}", port);
  try {
    boost::asio::io_context loop{1};
    transport::Listener::tcp(loop, kLoopback, port, [](transport::Socket) {});
    findings.ok(what, fmt::format("free at {}: `troupe head` can listen there", kLoopback));
  } catch (const std::exception& error) {
    if (answer && answer->at.port == port) return findings.ok(what, "the head listens there");
    if (const auto troupe = troupe_on(port, token_file)) {
      return findings.note(what, fmt::format("in use at {} by {}", kLoopback, troupe->what),
                           troupe->has_our_token
                               ? fmt::format("use it with --address {}:{}, or start another head "
                                             "beside it with `troupe head --port N`",
                                             kLoopback, port)
                               : "name its token file with --token-file to use it, or start a head "
                                 "beside it with `troupe head --port N`");
    }
    findings.note(what, error.what(),
                  fmt::format("find out whose it is with `ss -ltnp 'sport = :{}'`, or start the "
                              "head elsewhere with `troupe head --port N`",
                              port));
  }
}

void check_token(Findings& findings, const std::string& token_file) {
  const char* variable = std::getenv("TROUPE_TOKEN");
  const bool from_variable = token_file.empty() && variable && *variable;
  const char* named = std::getenv("TROUPE_TOKEN_FILE");
  const auto file = !token_file.empty() ? token_file
                    : named && *named   ? std::string(named)
                    : state_folder()    ? config::default_token_file()
                                        : std::string();
  if (!from_variable && file.empty()) {
    return findings.problem("token", "this user has no home directory, where it would be",
                            "set HOME, or XDG_STATE_HOME, or name the file with --token-file");
  }
  struct stat state {};
  if (!from_variable && ::stat(file.c_str(), &state) != 0) {
    const auto value = fmt::format("{}: {}", file, std::strerror(errno));
    if (!token_file.empty()) {
      return findings.problem("token", value,
                              "name the file that the head has printed, copied here");
    }
    return findings.ok("token", value + "; the first `troupe head` here makes it");
  }
  try {
    const auto token = config::find_token(token_file);
    findings.ok("token", from_variable
                             ? token.from
                             : fmt::format("{}, mode {:04o}", token.from, state.st_mode & 07777));
  } catch (const std::exception& error) {
    findings.problem("token", error.what(),
                     from_variable
                         ? "set TROUPE_TOKEN to the 64 digits of the head's token file, or unset it"
                         : fmt::format("make it a file of the head's 64 digits that only you can "
                                       "read: chmod 600 {}",
                                       file));
  }
}

void check_state_folder(Findings& findings) {
  const auto known_folder = state_folder();
  if (!known_folder) {
    return findings.problem("state folder", "this user has no home directory",
                            "set HOME, or XDG_STATE_HOME, to a folder that you may write: the "
                            "token, logs and copies of programs go there");
  }
  const auto& folder = *known_folder;
  if (const auto why = why_not_writable(folder); !why.empty()) {
    return findings.problem("state folder", why,
                            fmt::format("make {} a folder that you may write, or name another one "
                                        "with XDG_STATE_HOME: the token, logs and copies of "
                                        "programs go there",
                                        folder));
  }
  struct statvfs disk {};
  const bool known = ::statvfs(existing_part(folder).c_str(), &disk) == 0;
  if (!known) return findings.ok("state folder", folder + " can be written");
  const auto free = disk.f_bavail * disk.f_frsize;
  const auto value =
      fmt::format("{} can be written, and has {} free", folder, store::format_bytes(free));
  if (free >= kLeastStateBytes) return findings.ok("state folder", value);
  findings.note("state folder", value,
                "logs, copies of programs and the address of the head go there: make room, or name "
                "another folder with XDG_STATE_HOME");
}

void check_spill_folder(Findings& findings) {
  const std::string folder = store::kDefaultSpillParent;
  if (const auto why = why_not_writable(folder); !why.empty()) {
    return findings.problem(
        "spill folder", why,
        "name a folder that can be written, by --spill-directory of `troupe "
        "head` and `troupe worker` (InitOptions::spill_directory): large values "
        "that memory has no room for go there");
  }
  struct statvfs disk {};
  if (::statvfs(existing_part(folder).c_str(), &disk) != 0)
    return findings.ok("spill folder", folder + " can be written");
  const auto free = disk.f_bavail * disk.f_frsize;
  const auto value = fmt::format("{} has {} free", folder, store::format_bytes(free));
  if (free >= kLeastSpillBytes) return findings.ok("spill folder", value);
  findings.note("spill folder", value,
                "large values that memory has no room for go there: make room, or name another "
                "folder with --spill-directory");
}

}  // namespace troupe::cli
