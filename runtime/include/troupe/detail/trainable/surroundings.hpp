#pragma once

#include <cstdint>
#include <string>

#include <troupe/gang_context.hpp>

namespace troupe::detail {

/// Where a rank of a gang is, and what it sees of the file system there. A value that crosses to
/// the driver.
struct Surroundings {
  std::uint32_t node = 0;        ///< GangContext::node()
  bool sees_marker = false;      ///< a file
  bool sees_checkpoint = false;  ///< a directory or a file
  int local_rank = 0;
};

/// An empty path is not seen, and neither is one that cannot be looked at (a folder that is not
/// there or may not be entered, a mount that has failed). Throws nothing for these. Any thread; a
/// lookup in the file system for each path.
Surroundings look(const GangContext& gang, const std::string& marker,
                  const std::string& checkpoint);

}  // namespace troupe::detail
