#include "checkpoint/restoring/saved_files.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "checkpoint/directory.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "support/scratch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using train::SavedFiles;
namespace fs = std::filesystem;

namespace {

const std::vector<float> kValues{1, 2.5, -3, 4};

/// Why a checkpoint is not read; empty: it was read.
std::string fault_of(const fs::path& checkpoint) {
  try {
    SavedFiles(checkpoint).verify();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a checkpoint is read with the values that were saved", "[train][checkpoint][files]") {
  const Scratch storage;
  const auto saved = save(storage.path(), kValues);
  CHECK(saved == storage.path() / "checkpoint_000000");
  CHECK(weight_in(saved) == kValues);
  CHECK(weight_in(saved.string() + "/") == kValues);
  CHECK(SavedFiles(saved).read("optimizer0.pt") == "its bytes");
  CHECK(fault_of(saved) == "");
}

TEST_CASE("any byte of a checkpoint that was altered is found", "[train][checkpoint][files]") {
  const Scratch storage;
  const auto saved = save(storage.path(), kValues);
  for (const auto& entry : fs::directory_iterator(saved)) {
    const auto bytes = content_of(entry.path());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      auto altered = bytes;
      altered[at] = static_cast<char>(altered[at] ^ 1);
      write(entry.path(), altered);
      INFO(entry.path() << ", byte " << at);
      // Between the values and in the text nothing can change but what nobody reads.
      if (fault_of(saved).empty()) CHECK(weight_in(saved) == kValues);
      if (entry.path().extension() == ".pt") CHECK_THAT(fault_of(saved), Contains("altered"));
    }
    write(entry.path(), bytes);
  }
  CHECK(fault_of(saved) == "");
}

TEST_CASE(
    "a file of a checkpoint that was truncated, altered or lost is named, and the one before "
    "offered",
    "[train][checkpoint][files]") {
  const Scratch storage;
  const auto first = save(storage.path(), {0, 0, 0, 1});
  const auto second = save(storage.path(), {0, 0, 0, 2});
  const auto third = save(storage.path(), kValues);
  const auto file = third / "model0_rank0.safetensors";
  const auto bytes = content_of(file);
  const auto offers =
      "; the checkpoint before it that is whole is " + second.string() + ": continue from that one";

  fs::resize_file(file, bytes.size() - 1);
  CHECK(fault_of(third) == file.string() + ": it has " + std::to_string(bytes.size() - 1) +
                               " bytes, and was written with " + std::to_string(bytes.size()) +
                               offers);
  auto altered = bytes;
  altered.back() = static_cast<char>(altered.back() ^ 8);
  write(file, altered);
  CHECK(fault_of(third) ==
        file.string() + ": it was altered after it was written: its checksum is another one" +
            offers);
  fs::remove(file);
  CHECK(fault_of(third) == file.string() + ": No such file or directory" + offers);
  write(third / "checkpoint.json", "");
  CHECK(fault_of(third) == (third / "checkpoint.json").string() + ": it is empty" + offers);

  // The one before it is damaged too.
  write(second / "optimizer0.pt", "its bytez");
  CHECK_THAT(fault_of(third), Contains("whole is " + first.string() + ": continue"));
  fs::remove(first / "checkpoint.json");
  CHECK_THAT(fault_of(third), Contains("; no checkpoint before it is whole"));
}

TEST_CASE("a manifest that is no file, too long or too deep is refused with its name",
          "[train][checkpoint][files]") {
  const Scratch storage;
  const auto saved = save(storage.path(), kValues);
  const auto manifest = saved / "checkpoint.json";
  const auto fault = [&] {
    const auto said = fault_of(saved);
    CHECK_THAT(said, Catch::StartsWith(manifest.string() + ": "));
    return said;
  };
  constexpr std::size_t kLevels = 1'000'000;
  write(manifest, R"({"checksum": 1, "deep": )" + std::string(kLevels, '[') +
                      std::string(kLevels, ']') + "}");
  CHECK_THAT(fault(), Contains("it has more than 64 levels of objects and lists"));
  fs::resize_file(manifest, (1ULL << 30) + 1);  // of which the disk has next to nothing
  CHECK_THAT(fault(), Contains("cannot be read (it has more than 1073741824 bytes)"));
  fs::remove(manifest);
  REQUIRE(::mkfifo(manifest.c_str(), 0600) == 0);
  CHECK_THAT(fault(), Contains("cannot be read (it is no file)"));
}

TEST_CASE("a checkpoint that is not there is told with the latest one, or what it lacks",
          "[train][checkpoint][files]") {
  const Scratch storage;
  const auto folder = storage.path() / "checkpoint_000003";
  fs::create_directory(folder);
  CHECK(train::latest_checkpoint(storage.path()).empty());
  CHECK_THAT(fault_of(storage.path() / "checkpoint_3"),
             Contains("checkpoint_3: there is no such checkpoint on this machine"));
  CHECK_THAT(fault_of(folder), Contains("checkpoint.json: cannot be read (No such file"));
  fs::create_directory(folder / "checkpoint.json");
  CHECK_THAT(fault_of(folder), Contains("cannot be read (Is a directory"));
  const auto saved = save(storage.path(), kValues);
  CHECK_THAT(fault_of(storage.path() / "checkpoint_3"),
             Contains("the latest there is " + saved.string()));
  CHECK_THAT(fault_of(storage.path()), Contains(storage.path().string() +
                                                ": it is no checkpoint, and has some; the latest "
                                                "is " +
                                                saved.string()));
  CHECK_THAT(fault_of(""), Contains("its path is empty"));
}
