#include <troupe/detail/trainable/surroundings.hpp>

#include <filesystem>
#include <system_error>

namespace troupe::detail {

Surroundings look(const GangContext& gang, const std::string& marker,
                  const std::string& checkpoint) {
  std::error_code unseen;
  Surroundings seen{.node = gang.node(), .local_rank = gang.local_rank()};
  seen.sees_marker = !marker.empty() && std::filesystem::is_regular_file(marker, unseen);
  seen.sees_checkpoint = !checkpoint.empty() && std::filesystem::exists(checkpoint, unseen);
  return seen;
}

}  // namespace troupe::detail
