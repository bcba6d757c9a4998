#pragma once

#include <stdexcept>
#include <string>

namespace troupe::store {

/// For the check() of the catalog and of its parts. Throws std::logic_error with `what` where an
/// invariant does not hold.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error("the catalog of the object store is inconsistent: " + what);
}

}  // namespace troupe::store
