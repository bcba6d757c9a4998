#include "config/token.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "os/files/file_content.hpp"

namespace troupe::config {
namespace {

constexpr off_t kMostTokenFile = 256;  // bytes; a token and a line end are 65

[[noreturn]] void refuse(std::string message) {
  raise({.kind = Failure::Kind::Refused, .message = std::move(message)});
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Enough of a token to be one that is cut off, or has a digit too many: what else is in a file is
/// none of our business.
bool resembles_token(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    return digit(c) >= 0 || std::string_view(" \t\r\n").find(c) != std::string_view::npos;
  });
}

/// `of_head`: the head makes its token file, all others copy it.
Secret read_token(const std::string& file, bool of_head) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) {
    refuse(
        fmt::format("token file {}: {}; copy it from the head's machine (mode 0600), or name it "
                    "with --token-file",
                    file, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode))
    refuse(fmt::format("{} is no file: name the token file itself", file));
  const bool is_small = status.st_size <= kMostTokenFile;
  const auto [text, why_not] = is_small ? os::read_file(file) : os::FileContent();
  if (!why_not.empty()) refuse(fmt::format("token file {} cannot be read: {}", file, why_not));
  if (!is_small || !resembles_token(text)) {
    refuse(fmt::format(
        "{} is no token file, which holds 64 hexadecimal digits: name another with --token-file",
        file));
  }
  if ((status.st_mode & 077) != 0) {
    refuse(fmt::format("token file {} can be read by others (mode {:o}): run `chmod 600 {}`", file,
                       status.st_mode & 0777, file));
  }
  if (const auto token = parse_token(text)) return *token;
  refuse(fmt::format("token file {} {}: {}", file,
                     text.empty() ? "is empty" : "does not hold 64 hexadecimal digits",
                     of_head ? "remove it, and the head makes a new one"
                             : "copy it from the head's machine again; on that machine, remove it "
                               "and start the head"));
}

/// Makes the file, unless it is there by then: whole before it has its name, so that of two heads
/// that start at once one makes it and both read the same.
void create_token(const std::string& file) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  auto part = file + ".XXXXXX";
  const int fd = mkostemp(part.data(), O_CLOEXEC);  // mode 0600
  if (fd < 0) {
    refuse(fmt::format("token file {} cannot be made: {}; name another with --token-file", file,
                       std::strerror(errno)));
  }
  const auto text = format_token(random_token()) + "\n";
  int error =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0
          ? 0
          : errno;
  close(fd);
  // Some file systems know only one of the two.
  if (error == 0 &&
      renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) != 0) {
    error = errno == EINVAL && link(part.c_str(), file.c_str()) == 0 ? 0 : errno;
  }
  unlink(part.c_str());
  if (error != 0 && error != EEXIST) {
    refuse(fmt::format(
        "token file {} cannot be written: {}; make room there, or name another with --token-file",
        file, std::strerror(error)));
  }
}

}  // namespace

std::string state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return std::string(state) + "/troupe";
  const char* home = std::getenv("HOME");
  const auto* user = home && *home == '/' ? nullptr : ::getpwuid(::getuid());
  if (user != nullptr) home = user->pw_dir;
  if (!home || *home != '/') {
    raise({.kind = Failure::Kind::Refused,
           .message =
               "this user has no home directory to keep the cluster's token and logs in: set HOME, "
               "or XDG_STATE_HOME"});
  }
  return std::string(home) + "/.local/state/troupe";
}

std::string default_token_file() { return state_directory() + "/token"; }
std::string address_file() { return state_directory() + "/address"; }
std::string known_head() {
  std::string head;
  std::ifstream file(address_file());
  std::getline(file, head);
  return head;
}

std::optional<Secret> parse_token(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  Secret token{};
  if (text.size() != 2 * token.size()) return std::nullopt;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    token[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return token;
}

std::string format_token(const Secret& token) {
  std::string text;
  for (auto byte : token) text += fmt::format("{:02x}", byte);
  return text;
}

Secret random_token() {
  Secret token{};
  if (RAND_bytes(token.data(), static_cast<int>(token.size())) != 1)
    refuse("this machine has no source of random bytes");
  return token;
}

Secret load_or_create_token(const std::string& file) {
  if (access(file.c_str(), F_OK) != 0) create_token(file);
  return read_token(file, true);
}

FoundToken find_token(const std::string& file) {
  const auto from_file = [](const std::string& at) {
    return FoundToken{read_token(at, false), "token file " + at};
  };
  if (!file.empty()) return from_file(file);
  if (const char* given = std::getenv("TROUPE_TOKEN"); given && *given) {
    if (auto token = parse_token(given)) return {*token, "TROUPE_TOKEN"};
    refuse(
        "TROUPE_TOKEN does not hold 64 hexadecimal digits: set it to what the head's token file "
        "holds");
  }
  if (const char* named = std::getenv("TROUPE_TOKEN_FILE"); named && *named)
    return from_file(named);
  if (access(default_token_file().c_str(), F_OK) == 0) return from_file(default_token_file());
  refuse(
      fmt::format("no token: copy the head's token file to {} (mode 0600), or name it with "
                  "--token-file or TROUPE_TOKEN_FILE, or set TROUPE_TOKEN",
                  default_token_file()));
}

}  // namespace troupe::config
