#pragma once

#include <string>

namespace troupe::launch {

/// How many ranks `-n` asks for: "4", "2:8" (as many as fit, within these), or "gpus".
struct GangSize {
  int least = 1;
  int most = 1;
  bool every_gpu =
      false;  ///< one rank for each GPU of the cluster: least and most are not known yet

  bool is_elastic() const { return least != most; }
};

/// Throws Refused, saying what is allowed.
GangSize parse_gang_size(const std::string& text);

}  // namespace troupe::launch
