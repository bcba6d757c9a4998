#include "checkpoint/directory.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "checkpoint/manifest.hpp"
#include "files/durable.hpp"
#include "files/errors.hpp"
#include "log/log.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "checkpoint_";

constexpr std::string_view kUnfinished = ".tmp";

/// Of what has a checkpoint's name.
std::optional<std::uint64_t> number_of(const fs::path& path) {
  const auto name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t number = 0;
  const auto* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

bool is_unfinished(const fs::path& path) {
  const auto name = path.filename().string();
  return name.starts_with(kPrefix) && name.ends_with(kUnfinished);
}

/// A name that no checkpoint has, nor anybody else's unfinished one.
fs::path unfinished_name(const fs::path& checkpoint) {
  std::random_device random;
  auto name = checkpoint;
  name += fmt::format(".{:08x}{:08x}{}", random(), random(), kUnfinished);
  return name;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

using Numbered = std::pair<std::uint64_t, fs::path>;

/// The highest number first.
std::vector<Numbered> numbered_in(const fs::path& storage) {
  std::vector<Numbered> found;
  for (auto& path : entries_of(storage)) {
    if (const auto number = number_of(path)) found.emplace_back(*number, std::move(path));
  }
  std::ranges::sort(found, std::greater{});
  return found;
}

/// Of writers that were killed.
void remove_unfinished(const fs::path& storage) {
  std::error_code ignored;
  for (const auto& path : entries_of(storage)) {
    if (is_unfinished(path)) fs::remove_all(path, ignored);
  }
}

fs::path with_number(const fs::path& storage, std::uint64_t number) {
  return storage / fmt::format("{}{:06}", kPrefix, number);
}

/// Whether a rename found a directory of that name.
bool is_taken(const std::error_code& error) {
  return error == std::errc::directory_not_empty || error == std::errc::file_exists;
}

}  // namespace

void make_storage(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> made;
  for (auto each = fs::absolute(folder).lexically_normal();
       each.has_relative_path() && !fs::exists(each, error); each = each.parent_path())
    made.push_back(each);
  fs::create_directories(folder, error);
  if (error)
    not_done(fmt::format("no directory {} for checkpoints", in_words(folder)), error.message());
  for (const auto& each : made) make_durable(each.parent_path());
}

PendingCheckpoint::PendingCheckpoint(const fs::path& storage, bool is_alone) {
  make_storage(storage);
  if (is_alone) remove_unfinished(storage);
  const auto there = numbered_in(storage);
  final_ = with_number(storage, there.empty() ? 0 : there.front().first + 1);
  unfinished_ = unfinished_name(final_);
  std::error_code error;
  if (!fs::create_directory(unfinished_, error)) {
    not_done(fmt::format("no directory {} for a checkpoint", in_words(unfinished_)),
             error.message());
  }
}

PendingCheckpoint::~PendingCheckpoint() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(unfinished_, ignored);
}

fs::path PendingCheckpoint::commit() {
  std::error_code error;
  fs::rename(unfinished_, final_, error);
  // Where there are no locks, another run may have taken the number.
  for (auto number = *number_of(final_) + 1; is_taken(error); ++number) {
    final_ = with_number(final_.parent_path(), number);
    fs::rename(unfinished_, final_, error);
  }
  if (error) not_done(fmt::format("cannot commit {}", in_words(final_)), error.message());
  committed_ = true;
  try {
    make_durable(final_.parent_path());
  } catch (const Error& failed) {
    log::warn(fmt::format("{}: {} is complete, and may be lost with the machine's power",
                          failed.what(), in_words(final_)));
  }
  return final_;
}

fs::path latest_checkpoint(const fs::path& storage) {
  std::error_code ignored;
  for (auto& [number, path] : numbered_in(storage)) {
    if (fs::is_regular_file(path / kManifestName, ignored)) return std::move(path);
  }
  return {};
}

std::vector<fs::path> checkpoints_before(const fs::path& checkpoint) {
  const auto number = number_of(checkpoint);
  std::vector<fs::path> before;
  for (auto& [its, path] : numbered_in(checkpoint.parent_path())) {
    if (!number || its < *number) before.push_back(std::move(path));
  }
  return before;
}

void remove_checkpoint(const fs::path& checkpoint) {
  const auto without_name = unfinished_name(checkpoint);
  std::error_code ignored;
  fs::rename(checkpoint, without_name, ignored);
  fs::remove_all(without_name, ignored);
}

}  // namespace troupe::train
