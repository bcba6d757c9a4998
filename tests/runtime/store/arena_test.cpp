#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "files.hpp"
#include "namespaces.hpp"
#include "store/memory/arena.hpp"
#include "store/memory/memory_room.hpp"

using namespace troupe::store;
using namespace troupe::store::test;

namespace {

Arena make_arena(std::uint64_t bytes) {
  auto made = Arena::make(bytes);
  REQUIRE(std::holds_alternative<Arena>(made));
  return std::move(std::get<Arena>(made));
}
Mapping map(const Arena& arena) {
  auto mapped = Mapping::map(arena.fd());
  REQUIRE(std::holds_alternative<Mapping>(mapped));
  return std::move(std::get<Mapping>(mapped));
}

/// Has this process told for these system calls that they are not supported. False: that cannot be
/// done here.
[[maybe_unused]] bool forbid(std::array<int, 2> calls) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const auto call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Of a fork that does this.
template <class Body>
int signal_of(Body body) {
  const auto pid = ::fork();
  if (pid == 0) {
    ::signal(SIGSEGV, SIG_DFL);  // Catch's handler would report it as the test's
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("only committed pages take memory, and punched ones go back", "[store][arena]") {
  auto arena = make_arena(1024 * kMiB);
  CHECK(arena.committed_bytes() == 0);

  REQUIRE_FALSE(arena.commit({64 * kMiB, 8 * kMiB}, kMiB));
  CHECK(arena.committed_bytes() == 8 * kMiB);

  arena.punch({66 * kMiB, 4 * kMiB});
  CHECK(arena.committed_bytes() == 4 * kMiB);
}

TEST_CASE("where a machine takes no pages back they stay, and the node lives on",
          "[store][arena]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("skipped: the sanitizers need the system calls that this forbids");
#else
  const auto pid = ::fork();
  if (pid == 0) {
    ::signal(SIGABRT, SIG_DFL);
    auto made = Arena::make(64 * kMiB);
    auto& arena = std::get<Arena>(made);
    if (arena.commit({0, kMiB}, kMiB)) ::_exit(2);
    if (!forbid({SYS_fallocate, SYS_madvise})) ::_exit(3);
    const auto refusal = arena.punch({0, kMiB});
    ::_exit(refusal && refusal->kind == Refusal::Kind::MemoryFull && arena.committed_bytes() == kMiB
                ? 0
                : 4);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
#endif
}

TEST_CASE("what is written is read at once through the other mapping, which cannot be written",
          "[store][arena]") {
  auto arena = make_arena(64 * kMiB);
  const Extent extent{4 * kMiB, kMiB};
  REQUIRE_FALSE(arena.commit(extent, kMiB));
  const auto mapping = map(arena);

  mapping.prepare_to_write(mapping.writable(extent));
  std::ranges::fill(mapping.writable(extent), std::byte{7});

  const auto readable = mapping.readable(extent);
  CHECK(std::ranges::all_of(readable, [](std::byte byte) { return byte == std::byte{7}; }));
  CHECK(mapping.as_readable(mapping.writable(extent)).data() == readable.data());
  // Mappings are not inherited, so the fork makes its own.
  const auto write_through_view = [&] {
    const auto own = Mapping::map(arena.fd());
    const_cast<std::byte*>(std::get<Mapping>(own).readable(extent).data())[0] = std::byte{8};
  };
  CHECK(signal_of(write_through_view) == SIGSEGV);
  CHECK(readable[0] == std::byte{7});
}

TEST_CASE("a fork does not see the arena", "[store][arena]") {
  auto arena = make_arena(64 * kMiB);
  REQUIRE_FALSE(arena.commit({0, kMiB}, kMiB));
  const auto mapping = map(arena);
  mapping.writable({0, kMiB})[0] = std::byte{1};

  CHECK(signal_of([&] { ::_exit(static_cast<int>(mapping.readable({0, kMiB})[0])); }) == SIGSEGV);
}

TEST_CASE("nobody can cut the arena or make it larger", "[store][arena]") {
  const auto arena = make_arena(64 * kMiB);
  CHECK(::ftruncate(arena.fd(), kMiB) != 0);
  CHECK(::ftruncate(arena.fd(), 128 * kMiB) != 0);
  CHECK(::fcntl(arena.fd(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
  CHECK((::fcntl(arena.fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a descriptor that is no arena is refused", "[store][arena]") {
  const troupe::os::UniqueFd memory(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(memory.get(), kMiB) == 0);
  CHECK(std::holds_alternative<Refusal>(Mapping::map(memory.get())));
  CHECK(std::holds_alternative<Refusal>(Mapping::map(-1)));
}

TEST_CASE("more memory than there is left is refused with the numbers, and nothing of it stays",
          "[store][arena]") {
  const auto room = memory_room();
  auto arena = make_arena(whole_pages(2 * room.limit));

  // More than could ever be left, so that nothing is taken from the machine while this is tried.
  const auto refusal = arena.commit({0, whole_pages(room.limit + 64 * kMiB)}, kMiB);

  REQUIRE(refusal);
  CHECK(refusal->kind == Refusal::Kind::MemoryFull);
  CHECK_THAT(refusal->message,
             Catch::Contains(room.who) && Catch::Contains("left of " + format_bytes(room.limit)));
  CHECK(arena.committed_bytes() == 0);
}

TEST_CASE("where address space is limited, mapping says so", "[store][arena]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("skipped: a sanitizer's own mappings are larger than any limit that would be worth a test");
  return;
#endif
  const auto arena = make_arena(1024 * 1024 * kMiB);
  const auto is_refused = [&] {
    const rlimit limit{64 * 1024 * kMiB, 64 * 1024 * kMiB};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto mapped = Mapping::map(arena.fd());
    const auto* refusal = std::get_if<Refusal>(&mapped);
    return refusal != nullptr && refusal->message.find("address space") != std::string::npos;
  };
  CHECK(in_fork(is_refused));
}

TEST_CASE("a /dev/shm of 64 KiB does not matter", "[store][arena]") {
#if defined(__SANITIZE_THREAD__)
  WARN("skipped: ThreadSanitizer's own thread keeps a process from having mounts of its own");
  return;
#endif
  const TinyDisk shm("/dev/shm", 64 << 10);
  if (!shm.why_not().empty()) {
    WARN("skipped: " << shm.why_not());
    return;
  }
  const auto is_fine = [&] {
    if (!shm.enter()) return false;
    auto made = Arena::make(64 * kMiB);
    auto& arena = std::get<Arena>(made);
    if (arena.commit({0, 32 * kMiB}, kMiB)) return false;
    const auto mapped = Mapping::map(arena.fd());
    std::ranges::fill(std::get<Mapping>(mapped).writable({0, 32 * kMiB}), std::byte{1});
    return arena.committed_bytes() == 32 * kMiB;
  };
  CHECK(in_fork(is_fine));
}
