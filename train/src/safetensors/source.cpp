#include "safetensors/source.hpp"

#include <algorithm>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/name.hpp"
#include "os/files/file_content.hpp"
#include "safetensors/loading.hpp"

namespace troupe::train::safetensors {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

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
  not_loaded(folder, fmt::format("the folder has neither {} nor {}{}", kFile, kIndex,
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

Source::Source(const fs::path& path) : path_(found_at(path)) {
  if (path_.extension() == ".json") {
    open_index();
    return;
  }
  const auto& file = files_.emplace_back(path_);
  for (const auto& [name, entry] : file.header().entries) tensors_[name] = {&file, &entry};
}

void Source::open_index() {
  const auto in = open_to_load(path_);
  const auto content = os::read_to_end(in.fd.get(), kMostHeaderBytes);
  if (!content.why_not.empty()) not_loaded(path_, content.why_not);
  if (content.bytes.size() > kMostHeaderBytes) not_loaded(path_, "it is too long for an index");
  std::map<std::string, const File*> files;
  loaded(path_, [&] {
    for (const auto& [name, file_name] : parse_index(content.bytes)) {
      auto& file = files[file_name];
      if (file == nullptr) file = &files_.emplace_back(path_.parent_path() / file_name);
      const auto found = file->header().entries.find(name);
      if (found == file->header().entries.end())
        not_loaded(path_, fmt::format("its tensor '{}' is not in {}", config::printable(name),
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
