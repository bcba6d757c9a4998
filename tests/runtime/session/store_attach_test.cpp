// Worker processes that cannot attach to the object store of their node.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "functions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLarge = std::size_t{200} << 10;

[[maybe_unused]] void limit_address_space() {
  std::ifstream in("/proc/self/statm");
  rlim_t pages = 0;
  in >> pages;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * 4096 + (rlim_t{512} << 20);
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Takes away what a process needs to map the store, and makes large results.
struct Confined {
  int without_address_space() {
    limit_address_space();
    return ::getpid();
  }
  int without_descriptors() {
    rlimit limit{256, 256};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
    return ::getpid();
  }
  std::string large(std::size_t bytes) const { return std::string(bytes, 'x'); }
  int pid() const { return ::getpid(); }
};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map terabytes

TEST_CASE("a process without address space for the store asks for it again, and its node lives on",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2});
  auto confined = spawn<Confined>();
  const int pid = confined.call<&Confined::without_address_space>().get(20s);
  const auto end = std::chrono::steady_clock::now() + 3s;  // two times as long as it waits before it asks again
  while (std::chrono::steady_clock::now() < end) {
    CHECK(confined.call<&Confined::large>(kLarge).get(20s).size() == kLarge);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(confined.call<&Confined::pid>().get(20s) == pid);
  CHECK(spawn<Confined>().call<&Confined::large>(kLarge).get(20s).size() == kLarge);
}

#endif

TEST_CASE("a process without a free descriptor returns large values in messages", "[runtime][session][store]") {
  auto cluster = init({.cpus = 2});
  auto confined = spawn<Confined>();
  const int pid = confined.call<&Confined::without_descriptors>().get(20s);
  for (int i = 0; i < 3; ++i) CHECK(confined.call<&Confined::large>(kLarge).get(20s).size() == kLarge);
  CHECK(confined.call<&Confined::pid>().get(20s) == pid);
}
