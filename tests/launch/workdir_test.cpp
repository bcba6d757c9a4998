#include "workdir/workdir.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "support/child.hpp"
#include "workdir/folder_cache.hpp"
#include "workdir/packed_folder.hpp"

using namespace troupe::launch;
using troupe::test::eventually;
using troupe::test::TemporaryFolder;
namespace fs = std::filesystem;

/// Folders that are sent: packed, kept once for each content, and there as long as a run needs them.
namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Paths of the files below it.
std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path().lexically_relative(folder).string());
  }
  return files;
}

std::set<std::string> packed(const fs::path& folder,
                             const std::vector<std::string>& left_out = {}) {
  const TemporaryFolder target;
  const FolderCache cache(target.path() + "/cache");
  const auto sent = pack_folder(folder.string(), left_out);
  cache.add(sent.digest, sent.archive);
  cache.unpack(sent.digest, target.path() + "/there");
  return files_in(target.path() + "/there");
}

const auto make_folder = [](const std::string& path) { fs::create_directory(path); };

}  // namespace

TEST_CASE("the same content has the same digest, whenever it was written", "[launch][workdir]") {
  const TemporaryFolder folder;
  for (const auto* name : {"/a", "/b"}) {
    write(folder.path() + name + "/x", "1");
    write(folder.path() + name + "/y/z", "2");
  }
  fs::last_write_time(folder.path() + "/b/x",
                      fs::file_time_type::clock::now() - std::chrono::hours(9));
  const auto digest = pack_folder(folder.path() + "/a").digest;
  CHECK(digest.size() == 64);
  CHECK(pack_folder(folder.path() + "/b").digest == digest);
  write(folder.path() + "/b/y/z", "3");
  CHECK(pack_folder(folder.path() + "/b").digest != digest);
}

TEST_CASE("what is not needed stays where it is", "[launch][workdir]") {
  const TemporaryFolder folder;
  const fs::path root = folder.path();
  for (const auto* file : {"train.py", ".git/HEAD", "a/__pycache__/x.pyc", "data/big", "a/x.ckpt",
                           "runs/run-1/log", "a/runs/kept", "a b/[1]/c", "a b/1/c"})
    write(root / file, "x");
  CHECK(packed(root).size() == 7);
  write(root / ".troupeignore", "# comment\n\ndata/\n*.ckpt  \r\n");
  CHECK(packed(root, {(root / "runs").string(), "/elsewhere", root.string()}) ==
        std::set<std::string>{".troupeignore", "train.py", "a/runs/kept", "a b/[1]/c", "a b/1/c"});
  CHECK(packed(root, {(root / "a b/[1]").string()}).count("a b/1/c") == 1);
  CHECK(packed(root, {(root / "a b/[1]").string()}).count("a b/[1]/c") == 0);
}

TEST_CASE("a folder that cannot be sent is refused with what is wrong", "[launch][workdir]") {
  const TemporaryFolder folder;
  write(folder.path() + "/small", "x");
  write(folder.path() + "/deep/down/large", std::string(1 << 20, 'x'));
  CHECK_THROWS_WITH(
      pack_folder(folder.path(), {}, 1 << 19),
      Catch::Contains("most of it in deep (1.0 MiB)") && Catch::Contains(".troupeignore"));
  CHECK_THROWS_WITH(pack_folder(folder.path() + "/small"), Catch::Contains("is no folder"));
  // Before it is read, of which more than a thousand parts would come.
  fs::resize_file(folder.path() + "/deep/down/large", 600u << 20);
  int parts = 0;
  CHECK_THROWS_WITH(pack_folder(folder.path(), {}, kMostWorkdirBytes,
                                [&] {
                                  ++parts;
                                  return false;
                                }),
                    Catch::Contains("most of it in deep (600.0 MiB)"));
  CHECK(parts < 100);
  CHECK_THROWS_AS(pack_folder(folder.path() + "/none"), troupe::Refused);
}

TEST_CASE("what of a folder cannot be read is named, and does not hide what is large",
          "[launch][workdir]") {
  const TemporaryFolder folder;
  const fs::path sent = folder.path() + "/sent", told = folder.path() + "/told";
  write(sent / "deep/down/large", std::string(1 << 20, 'x'));
  fs::create_directory(sent / "locked");
  fs::permissions(sent / "locked", fs::perms::none);
  fs::create_directory(told);
  fs::permissions(told, fs::perms::all);
  fs::permissions(folder.path(), fs::perms::all);
  const auto pid = ::fork();
  if (pid == 0) {  // root may read all
    if (::geteuid() == 0 && ::setuid(65'534) != 0) ::_exit(1);
    int number = 0;
    for (const std::uint64_t most : {std::uint64_t{1} << 19, kMostWorkdirBytes}) {
      try {
        pack_folder(sent.string(), {}, most);
      } catch (const std::exception& error) {
        std::ofstream(told / std::to_string(++number)) << error.what();
      }
    }
    ::_exit(0);
  }
  int status = 1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
  CHECK_THAT(content(told / "1"), Catch::Contains("most of it in deep (1.0 MiB), locked"));
  CHECK_THAT(content(told / "2"), Catch::Contains("./locked: ") && Catch::Contains("denied") &&
                                      Catch::Contains(".troupeignore"));
  fs::permissions(sent / "locked", fs::perms::owner_all);
}

TEST_CASE("what is not sent is not told as large", "[launch][workdir]") {
  const TemporaryFolder folder;
  for (const auto* name : {"/.git/pack", "/data/all", "/code"})
    write(folder.path() + name, std::string(1 << 20, 'x'));
  write(folder.path() + "/.troupeignore", "data/\n");
  CHECK_THROWS_WITH(pack_folder(folder.path(), {}, 1 << 19),
                    Catch::Contains("most of it in code (1.0 MiB), .troupeignore") &&
                        !Catch::Contains(".git") && !Catch::Contains("data"));
}

TEST_CASE("a folder of which nobody wants to hear any more is not packed", "[launch][workdir]") {
  const TemporaryFolder folder;
  write(folder.path() + "/x", "1");
  CHECK(pack_folder(folder.path(), {}, kMostWorkdirBytes, [] { return true; }).digest.empty());
  CHECK_FALSE(
      pack_folder(folder.path(), {}, kMostWorkdirBytes, [] { return false; }).digest.empty());
}

TEST_CASE("an archive that was damaged is forgotten, and the eight used last are kept",
          "[launch][workdir]") {
  const TemporaryFolder folder;
  const FolderCache cache(folder.path());
  cache.add("damaged", "this is no archive");
  CHECK(cache.has("damaged"));
  CHECK_THROWS_AS(cache.unpack("damaged", folder.path() + "/target"), troupe::Refused);
  CHECK_FALSE(cache.has("damaged"));
  CHECK_FALSE(fs::exists(folder.path() + "/target"));
  for (int i = 0; i < 12; ++i) cache.add(std::to_string(i), "x");
  int kept = 0;
  for (int i = 0; i < 12; ++i) kept += cache.has(std::to_string(i)) ? 1 : 0;
  CHECK(kept == 8);
  CHECK(cache.has("11"));
}

TEST_CASE("a folder is filled once, and is there until the last who has it", "[launch][workdir]") {
  const TemporaryFolder parent;
  int filled = 0;
  const auto fill = [&](const std::string& path) {
    make_folder(path);
    write(path + "/x", std::to_string(++filled));
  };
  auto first = std::make_unique<LiveFolder>(parent.path(), "run", fill);
  auto second = std::make_unique<LiveFolder>(parent.path(), "run", fill);
  CHECK(filled == 1);
  CHECK(second->path() == first->path());
  first.reset();
  CHECK(content(second->path() + "/x") == "1");
  second.reset();
  CHECK(fs::is_empty(parent.path()));
  const LiveFolder again(parent.path(), "run", fill);
  CHECK(content(again.path() + "/x") == "2");
}

TEST_CASE("the folder of a process that was killed is removed by the next", "[launch][workdir]") {
  const TemporaryFolder parent;
  const auto pid = ::fork();
  if (pid == 0) {
    const LiveFolder left(parent.path(), "left", make_folder);
    write(parent.path() + "/left.partial/x", "of one who was killed as it filled");
    write(parent.path() + "/ready", "x");
    ::pause();
    ::_exit(0);
  }
  CHECK(eventually([&] { return fs::exists(parent.path() + "/ready"); }));
  remove_left_folders(parent.path());
  CHECK(fs::is_directory(parent.path() + "/left"));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  const LiveFolder own(parent.path(), "own", make_folder);
  remove_left_folders(parent.path());
  CHECK_FALSE(fs::exists(parent.path() + "/left"));
  CHECK_FALSE(fs::exists(parent.path() + "/left.partial"));
  CHECK_FALSE(fs::exists(parent.path() + "/left.lock"));
  CHECK(fs::is_directory(own.path()));
}

TEST_CASE("who fails to fill a folder leaves none, and the next may try", "[launch][workdir]") {
  const TemporaryFolder parent;
  const auto fail = [](const std::string&) { throw std::runtime_error("the disk is full"); };
  CHECK_THROWS_WITH(LiveFolder(parent.path(), "run", fail), "the disk is full");
  const LiveFolder next(parent.path(), "run", make_folder);
  CHECK(fs::is_directory(next.path()));
}

TEST_CASE("scratch folders are each process's own, and gone with it", "[launch][workdir]") {
  const auto one = make_scratch(), other = make_scratch();
  CHECK(one->path() != other->path());
  CHECK((fs::status(one->path()).permissions() & fs::perms::others_all) == fs::perms::none);
  const auto path = one->path();
  write(path + "/x", "x");
  const auto parent = fs::path(path).parent_path();
  CHECK((fs::status(parent).permissions() & fs::perms::others_all) == fs::perms::none);
}

namespace {

/// As a user whom the rights to a folder bind: in a process of its own, where this one is root.
int as_bound_user(const std::string& folder, const std::function<int()>& what) {
  constexpr uid_t kNobody = 65534;
  const auto pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0 && (::chown(folder.c_str(), kNobody, kNobody) != 0 ||
                             ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
      ::_exit(100);
    ::_exit(what());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

}  // namespace

TEST_CASE("a folder goes also where a program has made folders in it read-only",
          "[launch][workdir]") {
  const TemporaryFolder parent;
  write(parent.path() + "/other/kept", "x");
  fs::permissions(parent.path() + "/other", fs::perms(0555));
  const auto ended = as_bound_user(parent.path(), [&] {
    {
      const LiveFolder live(parent.path(), "run", make_folder);
      for (const auto* file : {"/a/b/x", "/a/c/y", "/closed/z"}) write(live.path() + file, "x");
      fs::create_directory_symlink(parent.path() + "/other", live.path() + "/a/link");
      fs::permissions(live.path() + "/a/b", fs::perms(0555));
      fs::permissions(live.path() + "/a", fs::perms(0555));
      fs::permissions(live.path() + "/closed", fs::perms(0000));
    }
    return fs::exists(parent.path() + "/run") || fs::exists(parent.path() + "/run.lock") ? 1 : 0;
  });
  CHECK(ended == 0);
  // What a link leads to is not the program's folder.
  CHECK(content(parent.path() + "/other/kept") == "x");
  CHECK(fs::status(parent.path() + "/other").permissions() == fs::perms(0555));
  fs::permissions(parent.path() + "/other", fs::perms(0755));
}

TEST_CASE("a folder for temporary files that is not there is named", "[launch][workdir]") {
  const TemporaryFolder folder;
  const auto none = folder.path() + "/none";
  const auto ended = as_bound_user(folder.path(), [&] {
    ::setenv("TMPDIR", none.c_str(), 1);
    try {
      make_scratch();
    } catch (const troupe::Refused& refused) {
      const std::string why = refused.what();
      return why.find("TMPDIR names '" + none + "', which is no folder") == why.npos ? 1 : 0;
    }
    return 2;
  });
  CHECK(ended == 0);
}
