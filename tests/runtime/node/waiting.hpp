#pragma once

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>

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

struct ProcessStat {
  std::string state;  ///< "R", "S", "Z", ...; "" where there is no such process
  pid_t parent = 0;
};
inline ProcessStat stat_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  ProcessStat stat;
  const auto closing = text.rfind(')');  // the name may hold anything
  if (closing != std::string::npos)
    std::istringstream(text.substr(closing + 1)) >> stat.state >> stat.parent;
  return stat;
}
inline std::string process_state(pid_t pid) { return stat_of(pid).state; }
inline bool runs(pid_t pid) {
  const auto state = process_state(pid);
  return !state.empty() && state != "Z" && state != "X";
}
inline bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (runs(pid)) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

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
