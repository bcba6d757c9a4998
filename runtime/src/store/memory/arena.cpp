#include "store/memory/arena.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "store/memory/memory_room.hpp"
#include "store/memory/write_faults.hpp"

namespace troupe::store {
namespace {

/// Committed between two looks at how much memory is left.
constexpr std::uint64_t kSliceBytes = std::uint64_t{32} << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Refusal refuse(Refusal::Kind kind, std::string message) { return {kind, std::move(message)}; }

int allocate(int fd, int mode, Extent extent) {
  for (;;) {
    if (::fallocate(fd, mode, static_cast<off_t>(extent.offset),
                    static_cast<off_t>(extent.bytes)) == 0)
      return 0;
    if (errno != EINTR) return errno;
  }
}

/// MAP_NORESERVE: what is mapped is address space, and pages are counted when they are committed.
std::byte* map_shared(int fd, int protection, std::uint64_t offset, std::uint64_t bytes) {
  void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd,
                    static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

void unmap(std::byte* at, std::uint64_t bytes) {
  if (at != nullptr) ::munmap(at, bytes);
}

void keep_to_this_process(std::byte* at, std::uint64_t bytes) {
  ::madvise(at, bytes, MADV_DONTFORK);
  ::madvise(at, bytes, MADV_DONTDUMP);
}

}  // namespace

// ---- Arena --------------------------------------------------------------------------------------

void Arena::Unmap::operator()(std::byte* at) const { unmap(at, bytes); }

Arena::Arena(os::UniqueFd memory, std::uint64_t space_bytes)
    : memory_(std::move(memory)),
      mapped_(map_shared(memory_.get(), PROT_READ | PROT_WRITE, 0, space_bytes),
              Unmap{space_bytes}) {
  if (mapped_) keep_to_this_process(mapped_.get(), space_bytes);
}

std::variant<Arena, Refusal> Arena::make(std::uint64_t space_bytes) {
  assert(space_bytes > 0 && space_bytes % kPageBytes == 0);  // Catalog::space_bytes()
  os::UniqueFd memory(::memfd_create("troupe-store", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(space_bytes)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return refuse(Refusal::Kind::MemoryFull,
                  fmt::format("no shared memory for the object store: {}", std::strerror(errno)));
  }
  return Arena(std::move(memory), space_bytes);
}

std::optional<Refusal> Arena::commit(Extent extent, std::uint64_t spare_bytes) {
  for (std::uint64_t done = 0; done < extent.bytes;) {
    const Extent slice{extent.offset + done, std::min(kSliceBytes, extent.bytes - done)};
    const auto room = memory_room();
    const bool fits = room.available >= extent.bytes - done + spare_bytes;
    const int error = fits ? allocate(memory_.get(), 0, slice) : ENOMEM;
    if (error == 0) {
      done += slice.bytes;
      continue;
    }
    // Where it cannot, the pages are there already when they are asked for again.
    static_cast<void>(punch(extent));
    return refuse(
        Refusal::Kind::MemoryFull,
        fmt::format("{} of memory were needed, {} have to stay free, and {}{}",
                    format_bytes(extent.bytes), format_bytes(spare_bytes), describe(room),
                    fits ? fmt::format("; the kernel said: {}", std::strerror(error)) : ""));
  }
  return std::nullopt;
}

std::optional<Refusal> Arena::punch(Extent extent) {
  const int error = allocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, extent);
  if (error == 0) return std::nullopt;
  // A sandbox may forbid the one way and know the other.
  if (mapped_ && ::madvise(mapped_.get() + extent.offset, extent.bytes, MADV_REMOVE) == 0)
    return std::nullopt;
  return refuse(
      Refusal::Kind::MemoryFull,
      fmt::format(
          "{} of the object store cannot be given back to this machine, and neither can what is "
          "freed later, until its job has ended: fallocate cannot punch a hole ({})",
          format_bytes(extent.bytes), std::strerror(error)));
}

std::uint64_t Arena::committed_bytes() const {
  struct stat status {};
  ::fstat(memory_.get(), &status);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

// ---- Mapping ------------------------------------------------------------------------------------

std::variant<Mapping, Refusal> Mapping::map(int arena) {
  struct stat status {};
  const int seals = ::fcntl(arena, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(arena, &status) != 0) {
    // Without the seals its size could change, and an access become a SIGBUS.
    return refuse(Refusal::Kind::Stopped,
                  "the descriptor that the node sent is no arena of an object store");
  }
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  auto* read = map_shared(arena, PROT_READ, 0, bytes);
  auto* write = read == nullptr ? nullptr : map_shared(arena, PROT_READ | PROT_WRITE, 0, bytes);
  if (write == nullptr) {
    const int error = errno;
    unmap(read, bytes);
    return refuse(Refusal::Kind::MemoryFull,
                  fmt::format("this process has no address space for twice the {} of the object "
                              "store (is there a limit, ulimit -v?): {}",
                              format_bytes(bytes), std::strerror(error)));
  }
  for (auto* at : {read, write}) keep_to_this_process(at, bytes);
  explain_writes_to({read, bytes});
  return Mapping(read, write, bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : read_(std::exchange(other.read_, nullptr)),
      write_(std::exchange(other.write_, nullptr)),
      bytes_(other.bytes_) {}

Mapping::~Mapping() {
  if (read_ != nullptr) forget_read_only({read_, bytes_});
  unmap(read_, bytes_);
  unmap(write_, bytes_);
}

bool Mapping::covers(Extent extent) const {
  return extent.offset <= bytes_ && extent.bytes <= bytes_ - extent.offset;
}

std::span<const std::byte> Mapping::readable(Extent extent) const {
  assert(covers(extent));
  return {read_ + extent.offset, extent.bytes};
}

std::span<std::byte> Mapping::writable(Extent extent) const {
  assert(covers(extent));
  return {write_ + extent.offset, extent.bytes};
}

std::span<const std::byte> Mapping::as_readable(std::span<const std::byte> writable) const {
  return readable({static_cast<std::uint64_t>(writable.data() - write_), writable.size()});
}

void Mapping::prepare_to_write(std::span<std::byte> writable) const {
  // Where the kernel is older than 5.14 the faults come one by one.
  ::madvise(writable.data(), whole_pages(writable.size()), MADV_POPULATE_WRITE);
}

// ---- Window -------------------------------------------------------------------------------------

std::variant<Window, Refusal> Window::open(const Arena& arena, Extent extent) {
  if (const auto whole = arena.mapped(); !whole.empty()) {
    return Window(whole.subspan(extent.offset, extent.bytes), false);
  }
  auto* at = map_shared(arena.fd(), PROT_READ | PROT_WRITE, extent.offset, extent.bytes);
  if (at == nullptr) {
    return refuse(Refusal::Kind::MemoryFull,
                  fmt::format("no address space for {} of the object store: {}",
                              format_bytes(extent.bytes), std::strerror(errno)));
  }
  return Window({at, extent.bytes}, true);
}

Window::Window(Window&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), own_(other.own_) {}
Window::~Window() {
  if (own_) unmap(bytes_.data(), bytes_.size());
}

/// The whole pages that the memory touches. Where the kernel is older than 5.14 the faults come one
/// by one.
void prepare_to_write(std::span<std::byte> memory) {
  if (memory.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / kPageBytes * kPageBytes;
  const auto end = whole_pages(reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

}  // namespace troupe::store
