#include "workdir/packed_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/name.hpp"
#include "node/program/digest.hpp"
#include "store/types.hpp"
#include "words/indented.hpp"
#include "words/refuse.hpp"
#include "words/say.hpp"
#include "workdir/packing.hpp"

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

[[noreturn]] void refuse_large(const std::string& folder, std::uint64_t most) {
  refuse(
      fmt::format("--workdir '{}' has more than {}, most of it in {}: name what is not "
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
  // Where tar tells it, before a file is read.
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
