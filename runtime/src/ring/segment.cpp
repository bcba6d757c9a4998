#include "ring/segment.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace troupe::ring {
namespace {

/// At the start of the memory; the rings' memory begins at the next page.
struct Head {
  char magic[8] = {'T', 'R', 'P', 'R', 'I', 'N', 'G', '1'};
  Control calls;
  Control replies;
};
constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kWholeBytes = kHeadBytes + 2 * Segment::kRingBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static_assert(sizeof(Head) <= kHeadBytes);

Head& head(std::byte* base) { return *reinterpret_cast<Head*>(base); }

std::byte* map_whole(int descriptor) {
  void* memory = ::mmap(nullptr, kWholeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

UniqueFd sealed_memory(const char* name, std::size_t bytes) {
  UniqueFd memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return UniqueFd();
  }
  return memory;
}

std::string check_sealed(int descriptor, std::size_t bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return "it is no descriptor";
  if (static_cast<std::size_t>(status.st_size) != bytes)
    return fmt::format("it has {} bytes instead of {}", status.st_size, bytes);
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return "it is not sealed to its size";
  return {};
}

std::optional<Segment> Segment::create() {
  auto memory = sealed_memory("troupe-ring", kWholeBytes);
  auto* base = memory ? map_whole(memory.get()) : nullptr;
  if (!base) return std::nullopt;
  new (base) Head;
  return Segment(base, std::move(memory));
}

std::variant<Segment, std::string> Segment::adopt(const UniqueFd& descriptor) {
  if (auto wrong = check_sealed(descriptor.get(), kWholeBytes); !wrong.empty()) return wrong;
  auto* base = map_whole(descriptor.get());
  if (!base) return std::string("it cannot be mapped: ") + std::strerror(errno);
  Segment segment(base, UniqueFd());
  if (std::memcmp(head(base).magic, Head{}.magic, sizeof Head::magic) != 0)
    return "it holds no rings";
  return segment;
}

Segment::Segment(std::byte* base, UniqueFd descriptor)
    : base_(base), descriptor_(std::move(descriptor)) {}

Segment::Segment(Segment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), descriptor_(std::move(other.descriptor_)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Segment::~Segment() {
  if (base_) ::munmap(base_, kWholeBytes);
}

Control& Segment::calls() const { return head(base_).calls; }
Control& Segment::replies() const { return head(base_).replies; }
std::span<std::byte> Segment::call_memory() const { return {base_ + kHeadBytes, kRingBytes}; }
std::span<std::byte> Segment::reply_memory() const {
  return {base_ + kHeadBytes + kRingBytes, kRingBytes};
}

}  // namespace troupe::ring
