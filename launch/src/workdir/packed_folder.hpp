#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::launch {

/// A folder as it is sent: an archive, named by its content.
struct PackedFolder {
  std::string digest;   ///< SHA-256 in hexadecimal
  std::string archive;  ///< as tar(1) writes it
};

inline constexpr std::uint64_t kMostWorkdirBytes = 512ull << 20;

/// Packs `folder`, without .git, __pycache__, the paths `left_out`, where they lie in it, and what
/// its .troupeignore names: patterns of tar --exclude, one a line, with comments behind # and a slash
/// at the end of a folder if one likes. The same content has the same digest. Throws Refused where it
/// is no folder, has more than `most` bytes (and says what is large), or cannot be read (and says
/// what of it). `give_up`: looked at every 100 ms; once it is true the digest is empty.
PackedFolder pack_folder(const std::string& folder, const std::vector<std::string>& left_out = {},
                         std::uint64_t most = kMostWorkdirBytes,
                         const std::function<bool()>& give_up = {});

}  // namespace troupe::launch
