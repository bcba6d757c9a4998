#pragma once

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>

#include <stdlib.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>

#include "process_stat.hpp"

namespace troupe::node::test {

/// Runs the loop until the condition holds; fails the test after the deadline.
template <class Condition>
void run_until(boost::asio::io_context& loop, const std::string& what, Condition condition,
               std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    INFO("waiting for " << what);
    REQUIRE(std::chrono::steady_clock::now() < end);
    if (loop.stopped()) loop.restart();
    loop.run_one_for(std::chrono::milliseconds(20));
  }
}

using troupe::test::gone_within;
using troupe::test::runs;
using troupe::test::stat_of;

/// A directory that is gone with this object.
struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "troupe-node-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

/// Writes a copy of this executable in which every `from` reads `to`, of the same length.
inline void write_patched(const std::filesystem::path& path, const std::string& from,
                          const std::string& to) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  REQUIRE(from.size() == to.size());
  REQUIRE(bytes.find(from) != std::string::npos);
  for (auto at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1))
    bytes.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << bytes;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}
/// One that needs a library which no machine has.
inline void write_with_missing_library(const std::filesystem::path& path) {
  write_patched(path, std::string("libstdc++.so.6\0", 15), std::string("libnotthere.so\0", 15));
}

}  // namespace troupe::node::test
