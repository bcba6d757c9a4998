#include "node/program/elf.hpp"

#include <cstring>
#include <optional>
#include <vector>

#include <elf.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::node {
namespace {

constexpr std::size_t kMostHeaders = 256;
constexpr std::size_t kLongestNotes = std::size_t{1} << 16;
constexpr std::size_t kLongestPath = 4096;

#if defined(__x86_64__)
constexpr std::uint16_t kHere = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kHere = EM_AARCH64;
#else
constexpr std::uint16_t kHere = EM_NONE;
#endif

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "ppc64";
    default:
      return fmt::format("machine {}", machine);
  }
}

std::optional<std::string> read_at(int file, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  if (::pread(file, bytes.data(), size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
    return std::nullopt;
  return bytes;
}

/// Properties are records of type, size and data, each padded to 8 bytes.
std::uint32_t isa_in_properties(const std::string& properties) {
  for (std::size_t at = 0; at + 8 <= properties.size();) {
    std::uint32_t type = 0, size = 0, value = 0;
    std::memcpy(&type, properties.data() + at, 4);
    std::memcpy(&size, properties.data() + at + 4, 4);
    at += 8;
    if (size > properties.size() - at) return 0;
    if (type == GNU_PROPERTY_X86_ISA_1_NEEDED && size >= 4) {
      std::memcpy(&value, properties.data() + at, 4);
      return value;
    }
    at += (size + 7) / 8 * 8;
  }
  return 0;
}

std::uint32_t isa_in_notes(const std::string& notes) {
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    const std::size_t name = at + sizeof header;
    const std::size_t data = name + (std::size_t{header.n_namesz} + 3) / 4 * 4;
    if (data > notes.size() || header.n_descsz > notes.size() - data) return 0;
    if (header.n_type == NT_GNU_PROPERTY_TYPE_0 &&
        notes.compare(name, 4, std::string("GNU\0", 4)) == 0) {
      return isa_in_properties(notes.substr(data, header.n_descsz));
    }
    at = data + (std::size_t{header.n_descsz} + 7) / 8 * 8;
  }
  return 0;
}

void read_segment(int file, const Elf64_Phdr& segment, ElfNeeds& needs) {
  if (segment.p_type == PT_INTERP && segment.p_filesz <= kLongestPath) {
    if (auto path = read_at(file, segment.p_offset, segment.p_filesz)) needs.loader = path->c_str();
  } else if (segment.p_type == PT_GNU_PROPERTY && segment.p_filesz <= kLongestNotes) {
    if (auto notes = read_at(file, segment.p_offset, segment.p_filesz))
      needs.isa_needed = isa_in_notes(*notes);
  }
}

[[maybe_unused]] std::uint32_t isa_levels_here() {
  std::uint32_t levels = 1;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v2")) levels |= 2;
  if (__builtin_cpu_supports("x86-64-v3")) levels |= 4;
  if (__builtin_cpu_supports("x86-64-v4")) levels |= 8;
#endif
  return levels;
}

int highest_level(std::uint32_t levels) {
  int level = 0;
  for (; levels != 0; levels >>= 1) ++level;
  return level;
}

}  // namespace

std::variant<ElfNeeds, NotElf> read_elf(int file) {
  auto start = read_at(file, 0, EI_NIDENT + 4);
  if (!start || start->compare(0, SELFMAG, ELFMAG) != 0)
    return NotElf{"it is not an ELF executable"};
  ElfNeeds needs;
  needs.bits = (*start)[EI_CLASS] == ELFCLASS64 ? 64 : 32;
  std::memcpy(&needs.machine, start->data() + EI_NIDENT + 2, sizeof needs.machine);
  if (needs.bits != 64) return needs;

  auto bytes = read_at(file, 0, sizeof(Elf64_Ehdr));
  if (!bytes) return NotElf{"its ELF header is cut off"};
  Elf64_Ehdr header;
  std::memcpy(&header, bytes->data(), sizeof header);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMostHeaders)
    return NotElf{"its ELF header is malformed"};
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    auto segment_bytes = read_at(file, header.e_phoff + i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
    if (!segment_bytes) return NotElf{"its program headers are cut off"};
    Elf64_Phdr segment;
    std::memcpy(&segment, segment_bytes->data(), sizeof segment);
    read_segment(file, segment, needs);
  }
  return needs;
}

std::string why_not_here(const ElfNeeds& needs) {
  if (needs.machine != kHere || needs.bits != 64) {
    return fmt::format(
        "it is built for {} ({} bits), this node is {} (64 bits); build it for {}, or use labels "
        "to keep it off this node",
        machine_name(needs.machine), needs.bits, machine_name(kHere), machine_name(kHere));
  }
  if (!needs.loader.empty() && ::access(needs.loader.c_str(), X_OK) != 0) {
    return fmt::format(
        "its dynamic loader {} is not on this node; build it with this node's C library, or link "
        "it statically",
        needs.loader);
  }
  const auto lacking = needs.isa_needed & ~isa_levels_here();
  if (kHere == EM_X86_64 && lacking != 0) {
    return fmt::format(
        "it needs the instruction set x86-64-v{}, this node's processor has x86-64-v{}; build it "
        "with -march=x86-64-v{}",
        highest_level(lacking), highest_level(isa_levels_here()), highest_level(isa_levels_here()));
  }
  return {};
}

}  // namespace troupe::node
