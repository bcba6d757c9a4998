#include "run/files.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/resource.h>
#include <sys/stat.h>
#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "support/child.hpp"
#include "workdir/file_content.hpp"

using namespace troupe::launch;
using troupe::test::TemporaryFolder;

namespace {

std::string text_in(const std::string& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// No file of this process can grow beyond that, as on a disk that is full.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LargestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }
  LargestFile(const LargestFile&) = delete;

 private:
  void (*ignored_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE("a file that an option names is read only where it is one, and not too large",
          "[launch]") {
  const TemporaryFolder folder;
  const auto pipe = folder.path() + "/pipe", large = folder.path() + "/large";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::ofstream(large).close();
  std::filesystem::resize_file(large, kMostFileBytes + 1);  // takes no room
  const auto told = [](const std::string& file) {
    try {
      read_file(file, "--attach");
    } catch (const troupe::Refused& refused) {
      return std::string(refused.what());
    }
    return std::string("it was read");
  };
  for (const auto& [file, why] : {std::pair(pipe, "it is a pipe"),
                                  {large, "more than 512"},
                                  {folder.path(), "it is a folder"},
                                  {std::string("/dev/zero"), "it is a device"},
                                  {folder.path() + "/none", "No such file"}}) {
    CHECK_THAT(told(file), Catch::Contains("'" + file + "'") && Catch::Contains("--attach") &&
                               Catch::Contains(why));
  }
  std::ofstream(folder.path() + "/small") << "1234";
  CHECK(read_file(folder.path() + "/small", "--attach") == "1234");
  CHECK(content_of(folder.path() + "/small", 4).bytes == "1234");
  CHECK_FALSE(content_of(folder.path() + "/small", 3).why_not.empty());
}

TEST_CASE("a file that cannot be written wholly keeps what it had, and the error says why",
          "[launch]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/result";
  write_file(file, "before", "--result");
  {
    const LargestFile limit(4096);
    CHECK_THROWS_WITH(write_file(file, std::string(1 << 20, 'x'), "--result"),
                      Catch::Contains("(--result): File too large"));
  }
  CHECK(text_in(file) == "before");
  write_file(file, "after", "--result");
  CHECK(text_in(file) == "after");
  const std::filesystem::directory_iterator all(folder.path());
  CHECK(std::distance(begin(all), end(all)) == 1);
  CHECK_THROWS_WITH(write_file("/dev/full", "x", "--summary"),
                    Catch::Contains("(--summary): No space left on device"));
}

TEST_CASE("a file behind a link is written there, with the mode that it had", "[launch]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/result", link = folder.path() + "/link";
  std::ofstream(file) << "before";
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  std::filesystem::create_symlink("result", link);
  write_file(link, "after", "--result");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(text_in(file) == "after");
  CHECK(std::filesystem::status(file).permissions() == std::filesystem::perms(0640));
}

TEST_CASE("a file behind a link that leads nowhere yet is made, and none behind a circle",
          "[launch]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/result", link = folder.path() + "/link",
             circle = folder.path() + "/circle";
  std::filesystem::create_symlink("result", link);
  std::filesystem::create_symlink("circle", circle);
  write_file(link, "after", "--result");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(text_in(file) == "after");
  CHECK_THROWS_WITH(write_file(circle, "x", "--result"),
                    Catch::Contains("(--result): Too many levels of symbolic links"));
  CHECK(std::filesystem::is_symlink(circle));
}

TEST_CASE("what an earlier run has written is removed, and emptied behind a link", "[launch]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/result", link = folder.path() + "/link";
  for (const auto& name : {file, link}) {
    std::ofstream(file) << "before";
    if (name == link) std::filesystem::create_symlink("result", link);
    remove_old(name, "--result");
    CHECK(std::filesystem::exists(name) == (name == link));
  }
  CHECK(std::filesystem::is_symlink(link));
  CHECK(text_in(file).empty());
  remove_old(folder.path() + "/none", "--result");
  remove_old("/dev/null", "--result");
  remove_old("", "--result");
  CHECK(std::filesystem::exists("/dev/null"));
}
