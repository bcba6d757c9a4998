#include "checkpoint/saving/shard_file.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "files/pending_file.hpp"
#include "store/memory/checksum.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

std::uint64_t checksum_of_bytes(const void* bytes, std::size_t count) {
  return store::checksum({static_cast<const std::byte*>(bytes), count});
}

SavedFile write_values(const std::map<std::string, ShardValues>& values, FileSink& sink) {
  std::map<std::string, safetensors::Entry> entries;
  for (const auto& [key, each] : values) entries.emplace(key, each.entry);
  const auto placed = safetensors::place(entries);
  const auto head = print_header(placed, {});
  SavedFile saved{.bytes = head.size()};
  sink.write(head.data(), head.size());
  for (const auto& [key, entry] : placed) {
    const auto* bytes = values.at(key).values;
    sink.write(bytes, entry.bytes());
    saved.checksums.emplace(key, checksum_of_bytes(bytes, entry.bytes()));
    saved.bytes += entry.bytes();
  }
  return saved;
}

class FolderSink final : public FileSink {
 public:
  explicit FolderSink(fs::path folder) : folder_(std::move(folder)) {}
  void begin(const std::string& name) override { file_.emplace(folder_ / name); }
  void write(const void* bytes, std::size_t count) override { file_->write(bytes, count); }
  void end() override {
    file_->commit();
    file_.reset();
  }

 private:
  const fs::path folder_;
  std::optional<PendingFile> file_;
};

}  // namespace

std::map<std::string, SavedFile> write_files(const ShardFiles& files, FileSink& sink) {
  std::map<std::string, SavedFile> saved;
  for (const auto& [name, values] : files.values) {
    sink.begin(name);
    saved.emplace(name, write_values(values, sink));
    sink.end();
  }
  for (const auto& [name, bytes] : files.bytes) {
    sink.begin(name);
    sink.write(bytes.data(), bytes.size());
    sink.end();
    saved.emplace(name,
                  SavedFile{.bytes = bytes.size(),
                            .checksums = {{"", checksum_of_bytes(bytes.data(), bytes.size())}}});
  }
  return saved;
}

std::unique_ptr<FileSink> sink_in(const fs::path& folder) {
  return std::make_unique<FolderSink>(folder);
}

}  // namespace troupe::train
