#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "os/unique_fd.hpp"

namespace troupe::launch {

/// tar(1) as it packs: its archive and its complaints come through pipes. One thread uses it.
class Packing {
 public:
  /// Throws Refused where tar is not installed, or no more pipes can be made.
  explicit Packing(std::vector<std::string> arguments);
  /// Kills tar if it still runs.
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  /// Some more of the archive, to be used before the next call; empty: none within 100 ms, or no
  /// more at all.
  std::string_view more();
  bool has_more() const { return archive_ || complaints_; }
  /// Once there is no more. -> as tar_status()
  int end();
  /// The first 2,000 bytes of what it said, without line ends behind it.
  std::string complaint() const;
  /// The last line of the complaint; empty if tar wrote more than kMostKept bytes.
  std::string last_line() const;

 private:
  static constexpr std::size_t kMostComplaint = 2000;
  static constexpr std::size_t kMostKept = 1 << 16;

  std::string_view part_of(os::UniqueFd& pipe);

  os::UniqueFd archive_, complaints_;
  std::vector<char> buffer_ = std::vector<char>(1 << 18);
  std::string said_;  ///< its first kMostKept bytes
  pid_t pid_ = -1;
};

/// The size of the archive that tar writes with these arguments, in bytes: it adds up the files and
/// reads none, as GNU tar does where an archive goes to /dev/null. Empty: tar does not tell, or
/// `give_up`, looked at every 100 ms, became true.
std::optional<std::uint64_t> size_packed(std::vector<std::string> arguments,
                                         const std::function<bool()>& give_up);

}  // namespace troupe::launch
