#include <troupe/detail/trainable/surroundings.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "fake_gang.hpp"

using troupe::detail::look;
namespace fs = std::filesystem;

TEST_CASE("a rank sees a marker that is a file, and a checkpoint that is a folder or a file",
          "[api][trainable]") {
  auto folder = (fs::temp_directory_path() / "troupe-look-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const auto file = folder + "/file";
  std::ofstream(file) << "here";
  const fake::GangOfThreads gang(std::make_shared<fake::GangTable>(), 1, 2);

  const auto both = look(gang, file, folder);
  CHECK(both.node == 3);
  CHECK(both.local_rank == 1);
  CHECK(both.sees_marker);
  CHECK(both.sees_checkpoint);
  const auto other_kinds = look(gang, folder, file);
  CHECK_FALSE(other_kinds.sees_marker);
  CHECK(other_kinds.sees_checkpoint);
  // Not there; below what is no folder; longer than a name can be.
  for (const auto& path :
       {std::string(), folder + "/none", file + "/below", folder + "/" + std::string(5'000, 'x')}) {
    const auto nothing = look(gang, path, path);
    CHECK_FALSE(nothing.sees_marker);
    CHECK_FALSE(nothing.sees_checkpoint);
  }
  fs::remove_all(folder);
}
