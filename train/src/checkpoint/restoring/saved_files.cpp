#include "checkpoint/restoring/saved_files.hpp"

#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "checkpoint/directory.hpp"
#include "files/errors.hpp"
#include "os/files/file_content.hpp"
#include "safetensors/file.hpp"
#include "store/memory/checksum.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

constexpr auto* kAltered = "it was altered after it was written: its checksum is another one";

/// With the folder that it is in, also where it is relative or ends with a slash.
fs::path spelled_out(const fs::path& path) {
  if (path.empty()) return path;
  auto whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

bool is_whole(const fs::path& checkpoint) {
  try {
    SavedFiles(checkpoint, /*offers=*/false).verify();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// What to continue from in the place of a damaged checkpoint.
std::string offer(const fs::path& damaged) {
  for (const auto& before : checkpoints_before(damaged)) {
    if (is_whole(before))
      return fmt::format("; the checkpoint before it that is whole is {}: continue from that one",
                         in_words(before));
  }
  return "; no checkpoint before it is whole";
}

[[noreturn]] void not_there(const fs::path& checkpoint) {
  const auto latest = latest_checkpoint(checkpoint.parent_path());
  not_done(in_words(checkpoint),
           fmt::format("there is no such checkpoint on this machine{}",
                       latest.empty() ? "" : "; the latest there is " + in_words(latest)));
}

}  // namespace

SavedFiles::SavedFiles(const fs::path& checkpoint, bool offers)
    : folder_(spelled_out(checkpoint)), offers_(offers) {
  if (folder_.empty()) not_done("no checkpoint can be read", "its path is empty");
  std::error_code ignored;
  if (fs::status(folder_, ignored).type() == fs::file_type::not_found) not_there(folder_);
  if (const auto inside = latest_checkpoint(folder_); !inside.empty())
    not_done(in_words(folder_),
             fmt::format("it is no checkpoint, and has some; the latest is {}", in_words(inside)));
  const auto content = os::read_regular_file(folder_ / kManifestName, kMostManifestBytes);
  if (!content.why_not.empty())
    fail(kManifestName, fmt::format("cannot be read ({}). Is {} the directory of a checkpoint?",
                                    content.why_not, in_words(folder_)));
  if (content.bytes.empty()) fail(kManifestName, "it is empty");
  try {
    manifest_ = parse_manifest(content.bytes);
    check_complete(manifest_);
  } catch (const safetensors::FormatError& error) {
    fail(kManifestName, error.what());
  }
  for (const auto& [name, file] : manifest_.files) {
    const auto bytes = fs::file_size(folder_ / name, ignored);
    if (ignored) fail(name, ignored.message());
    if (bytes != file.bytes)
      fail(name, fmt::format("it has {} bytes, and was written with {}", bytes, file.bytes));
  }
}

SavedFiles::~SavedFiles() = default;

void SavedFiles::read(const SavedPiece& piece, safetensors::DType type, void* into) {
  auto& file = open(piece.file);
  const auto& entries = file.header().entries;
  const auto found = entries.find(piece.key);
  const auto bytes = static_cast<std::uint64_t>(piece.count) * size_of(type);
  if (found == entries.end() || found->second.type != type || found->second.bytes() != bytes)
    fail(piece.file, fmt::format("it does not have '{}' as the manifest says", piece.key));
  try {
    file.read(found->second, into);
  } catch (const Error& error) {
    fail(piece.file, error.what());
  }
  const auto checksum = store::checksum({static_cast<const std::byte*>(into), bytes});
  if (checksum != manifest_.files.at(piece.file).checksums.at(piece.key))
    fail(piece.file, kAltered);
}

std::string SavedFiles::read(const std::string& file) {
  const auto& [bytes, checksums] = manifest_.files.at(file);
  auto content = os::read_regular_file(folder_ / file, bytes);
  if (!content.why_not.empty()) fail(file, content.why_not);
  const auto expected = checksums.find("");
  if (expected == checksums.end() ||
      store::checksum(std::as_bytes(std::span(content.bytes))) != expected->second)
    fail(file, kAltered);
  return std::move(content.bytes);
}

void SavedFiles::verify() {
  std::vector<std::byte> bytes;
  for (const auto& [name, file] : manifest_.files) {
    if (file.checksums.contains("")) {
      read(name);
      continue;
    }
    for (const auto& [key, entry] : open(name).header().entries) {
      const auto count = static_cast<std::int64_t>(entry.bytes() / size_of(entry.type));
      if (!file.checksums.contains(key)) fail(name, kAltered);
      bytes.resize(entry.bytes());
      read({.file = name, .key = key, .first = 0, .count = count}, entry.type, bytes.data());
    }
  }
}

safetensors::File& SavedFiles::open(const std::string& file) {
  const auto known = open_.find(file);
  if (known != open_.end()) return *known->second;
  try {
    auto opened = std::make_unique<safetensors::File>(folder_ / file);
    return *open_.emplace(file, std::move(opened)).first->second;
  } catch (const Error& error) {
    fail(file, error.what());
  }
}

void SavedFiles::fail(const std::string& file, const std::string& why) const {
  not_done(in_words(folder_ / file), why + (offers_ ? offer(folder_) : ""));
}

}  // namespace troupe::train
