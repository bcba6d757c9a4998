#include "ring/bell.hpp"

#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "os/futex.hpp"

namespace troupe::ring {
namespace {

constexpr std::size_t kBytes = 4096;

void* map_page(int descriptor) {
  return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
}

}  // namespace

std::unique_ptr<Bell> Bell::create() {
  auto memory = sealed_memory("troupe-bell", kBytes);
  void* page = memory ? map_page(memory.get()) : MAP_FAILED;
  if (page == MAP_FAILED) throw std::bad_alloc();
  return std::unique_ptr<Bell>(new Bell(new (page) Words{0, 0}, std::move(memory)));
}

std::unique_ptr<Bell> Bell::adopt(const UniqueFd& descriptor) {
  if (!check_sealed(descriptor.get(), kBytes).empty()) return nullptr;
  void* page = map_page(descriptor.get());
  if (page == MAP_FAILED) return nullptr;
  return std::unique_ptr<Bell>(new Bell(static_cast<Words*>(page), UniqueFd()));
}

Bell::~Bell() { ::munmap(words_, kBytes); }

void Bell::ring() {
  // To add nothing is still to take one's turn with those who announce a sleep: they come before
  // and are seen, or after and see what was written before this.
  if (words_->sleepers.fetch_add(0, std::memory_order_acq_rel) == 0) return;
  words_->rings.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake_all(words_->rings);
}

void Bell::sleep(std::uint32_t seen, const timespec* at_most) {
  os::futex_wait(words_->rings, seen, at_most);
}

}  // namespace troupe::ring
