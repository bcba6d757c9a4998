#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace troupe::node {

/// What an executable file says that it needs.
struct ElfNeeds {
  std::uint16_t machine = 0;  ///< EM_X86_64, ...
  int bits = 0;               ///< 32 or 64
  std::string loader;         ///< its dynamic loader; empty: linked statically
  /// GNU_PROPERTY_X86_ISA_1_NEEDED: bit n is level x86-64-v(n+1); 0: does not say.
  std::uint32_t isa_needed = 0;
};
struct NotElf {
  std::string why;
};

/// Reads headers and notes only; every offset is checked against the file, which may be anything.
std::variant<ElfNeeds, NotElf> read_elf(int file);

/// "" if this machine can run such a program, else what differs and what to do.
std::string why_not_here(const ElfNeeds& needs);

}  // namespace troupe::node
