#include "checkpoint/directory.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "files/durable.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "checkpoint_";

constexpr std::string_view kUnfinished = ".tmp";

/// Of what has a checkpoint's name, and `behind` after it.
std::optional<std::uint64_t> number_of(const fs::path& path, std::string_view behind = "") {
  auto name = path.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(behind)) return std::nullopt;
  name.resize(name.size() - behind.size());
  std::uint64_t number = 0;
  const auto* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

fs::path highest(const fs::path& storage, std::uint64_t& number) {
  fs::path found;
  std::error_code error;
  for (fs::directory_iterator at(storage, error), end; !error && at != end; at.increment(error)) {
    const auto its = number_of(at->path());
    if (its && (found.empty() || *its > number)) {
      number = *its;
      found = at->path();
    }
  }
  return found;
}

/// Of writers that were killed.
void remove_unfinished(const fs::path& storage) {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator at(storage, error), end; !error && at != end; at.increment(error)) {
    if (number_of(at->path(), kUnfinished)) left.push_back(at->path());
  }
  for (const auto& path : left) fs::remove_all(path, error);
}

}  // namespace

PendingCheckpoint::PendingCheckpoint(const fs::path& storage) {
  std::error_code error;
  fs::create_directories(storage, error);
  if (error)
    not_done(fmt::format("no directory {} for checkpoints", storage.string()), error.message());
  std::uint64_t number = 0;
  if (!highest(storage, number).empty()) ++number;
  final_ = storage / fmt::format("{}{:06}", kPrefix, number);
  unfinished_ = final_;
  unfinished_ += kUnfinished;
  remove_unfinished(storage);
  fs::remove_all(unfinished_, error);  // whose error is of interest
  if (error) not_done(fmt::format("cannot remove {}", unfinished_.string()), error.message());
  if (!fs::create_directory(unfinished_, error)) {
    not_done(fmt::format("no directory {} for a checkpoint", unfinished_.string()),
             error.message());
  }
}

PendingCheckpoint::~PendingCheckpoint() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(unfinished_, ignored);
}

fs::path PendingCheckpoint::commit() {
  for (const auto& entry : fs::directory_iterator(unfinished_)) make_durable(entry.path());
  make_durable(unfinished_);
  std::error_code error;
  fs::rename(unfinished_, final_, error);
  if (error) not_done(fmt::format("cannot commit {}", final_.string()), error.message());
  committed_ = true;
  make_durable(final_.parent_path());
  return final_;
}

fs::path latest_checkpoint(const fs::path& storage) {
  std::uint64_t number = 0;
  return highest(storage, number);
}

}  // namespace troupe::train
