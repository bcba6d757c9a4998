#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <troupe/gang_context.hpp>

#include "checkpoint/restoring/saved_files.hpp"
#include "checkpoint/saving/save_in_flight.hpp"
#include "checkpoint/saving/saver.hpp"
#include "support/forked_gang.hpp"

/// Checkpoints of a few numbers, without LibTorch.
namespace troupe::testing {

/// Elements [first, first + values.size()) of the tensor "weight" of `elements`, and on rank 0 the
/// optimizer's file.
inline train::RankShare share_of(int rank, std::int64_t elements, std::int64_t first,
                                 const std::vector<float>& values) {
  const auto file = fmt::format("model0_rank{}.safetensors", rank);
  const auto count = static_cast<std::int64_t>(values.size());
  const auto owner = std::make_shared<std::vector<float>>(values);
  train::RankShare share;
  auto& model = share.manifest.models.emplace_back();
  auto& optimizer = share.manifest.optimizers.emplace_back();
  optimizer.type = "None";
  optimizer.file = "optimizer0.pt";
  if (rank == 0) share.files.bytes["optimizer0.pt"] = "its bytes";
  if (count == 0) return share;
  model.tensors["weight"] = {.type = train::safetensors::DType::F32,
                             .shape = {elements},
                             .pieces = {{file, "weight", first, count}}};
  share.files.values[file]["weight"] = {
      .entry = {.type = train::safetensors::DType::F32, .shape = {count}},
      .values = owner->data(),
      .owner = owner};
  return share;
}

/// In a rank: its process has another folder there from now on, of 1 MiB, and is alone with that.
inline bool hide(const std::filesystem::path& folder) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

/// Whether a rank can hide() a folder: only root may mount one. Prints that the test is skipped
/// where a rank cannot.
inline bool can_hide(const std::filesystem::path& folder) {
  const auto child = ::fork();
  if (child == 0) ::_exit(hide(folder) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status == 0) return true;
  std::cout << "skipped: mounting a folder for one process needs root\n";
  return false;
}

/// In a rank: no file that its process writes becomes larger than so many bytes.
inline void limit_files(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  expect(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "the limit of files");
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  expect(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "another limit of files");
}

/// The names in a folder, in their order, but for the lock of the run that writes to it.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() != ".lock") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}
inline std::size_t entries(const std::filesystem::path& folder) { return names_in(folder).size(); }

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// The elements of "weight".
inline std::vector<float> weight_in(const std::filesystem::path& checkpoint) {
  train::SavedFiles files(checkpoint);
  const auto& tensor = files.manifest().models.at(0).tensors.at("weight");
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.at(0)));
  for (const auto& piece : tensor.pieces)
    files.read(piece, tensor.type, values.data() + piece.first);
  return values;
}

/// -> the directory. One rank, whose values these are.
inline std::filesystem::path save(const std::filesystem::path& storage,
                                  const std::vector<float>& values) {
  train::Saver saver(storage, nullptr, std::chrono::minutes(1));
  return saver.begin(share_of(0, static_cast<std::int64_t>(values.size()), 0, values))
      ->wait()
      .directory;
}

}  // namespace troupe::testing
