#include "collective/host/memory/shared_memory.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/scratch.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

constexpr std::size_t kBytes = 3 * 4096;
constexpr auto kMemoryLimit = troupe::test::kGuard;

/// What a late rank does with the memory that it was given.
void open_late_and_write(Patience& patience) {
  auto& rendezvous = patience.gang().rendezvous();
  rendezvous.get("reused", kMemoryLimit);
  try {
    SharedMemory memory(patience, "memory", kBytes, 0);
    std::memset(memory.data(), 0xff, memory.size());
  } catch (...) {
    rendezvous.set("opened", "no");
    throw;
  }
  rendezvous.set("opened", "yes");
}

/// Puts something else in the place of a descriptor whose file has `bytes`.
using Replace = std::function<void(Patience& patience, int descriptor, off_t bytes)>;

/// Rank 0 makes shared memory, closes its descriptor and lets `replace` use the number again; then
/// rank 1 comes.
std::vector<Outcome> open_after(const Replace& replace) {
  return ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    Patience patience(gang, {kMemoryLimit, kMemoryLimit}, "test", true);
    patience.begin({});
    if (gang.rank() == 1) return open_late_and_write(patience);
    SharedMemory memory(patience, "memory", kBytes, 0);
    int pid = 0;
    int descriptor = -1;
    std::sscanf(gang.rendezvous().get("memory", kMemoryLimit).c_str(), "%d %d", &pid, &descriptor);
    struct stat status {};
    expect(pid == ::getpid() && ::fstat(descriptor, &status) == 0,
           "the descriptor that rank 0 has published");
    memory.close_descriptor();
    replace(patience, descriptor, status.st_size);
    gang.rendezvous().set("reused", "yes");
    gang.rendezvous().get("opened", kMemoryLimit);
  });
}

void put_at(int descriptor, int other) {
  expect(other >= 0, "something to take the place of the shared memory");
  if (other == descriptor) return;
  expect(::dup3(other, descriptor, O_CLOEXEC) == descriptor, "the same number");
  ::close(other);
}

void check_refused(const std::vector<Outcome>& outcomes, const std::string& why) {
  CHECK(failures({outcomes[0]}) == "");
  CHECK(outcomes[1].threw);
  CHECK_THAT(outcomes[1].message, Contains("rank 1") && Contains("shared memory") &&
                                      Contains("rank 0") && Contains(why) &&
                                      Contains("Start the gang anew"));
}

}  // namespace

TEST_CASE("a late rank leaves a file alone that has the number of its gang's shared memory now",
          "[train][collective][shared_memory]") {
  const Scratch scratch;
  const auto path = (scratch.path() / "letters").string();
  check_refused(open_after([&](Patience&, int descriptor, off_t bytes) {
                  std::ofstream(path) << std::string(static_cast<std::size_t>(bytes), 'a');
                  put_at(descriptor, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
                }),
                "letters");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text.size() >= kBytes);
  CHECK(text.find_first_not_of('a') == std::string::npos);
}

TEST_CASE("a late rank refuses other shared memory of its size that has the number now",
          "[train][collective][shared_memory]") {
  std::unique_ptr<SharedMemory> other;  // of rank 0's process
  check_refused(open_after([&](Patience& patience, int descriptor, off_t) {
                  other = std::make_unique<SharedMemory>(patience, "other", kBytes, 0);
                  int pid = 0;
                  int number = -1;
                  std::sscanf(patience.gang().rendezvous().get("other", kMemoryLimit).c_str(),
                              "%d %d", &pid, &number);
                  if (number != descriptor) put_at(descriptor, ::dup(number));
                }),
                "it is another gang's, or of another call");
}

TEST_CASE("a late rank says that the shared memory of its gang is closed",
          "[train][collective][shared_memory]") {
  check_refused(open_after([](Patience&, int, off_t) {}), "has closed it");
}

TEST_CASE("a late rank does not wait in a pipe that has the number of its gang's shared memory now",
          "[train][collective][shared_memory]") {
  const Scratch scratch;
  const auto path = (scratch.path() / "pipe").string();
  check_refused(open_after([&](Patience&, int descriptor, off_t) {
                  expect(::mkfifo(path.c_str(), 0600) == 0, "a pipe");
                  put_at(descriptor, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
                }),
                "pipe");
}
