#include "run/launch/where.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <troupe/detail/private_cluster.hpp>

#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kMostRanks = 4;

std::string said(const troupe::detail::RankSign& sign) {
  if (!sign.last_line.empty()) return fmt::format("last printed '{}'", sign.last_line);
  if (sign.process == 0) return "runs";
  if (troupe::detail::is_cluster_private()) return "has shown no line here";
  return fmt::format("has shown no line here (`troupe logs process {}` has its log)", sign.process);
}

}  // namespace

std::string where_it_stands(const std::vector<Place>& places,
                            const std::vector<troupe::detail::RankSign>& signs,
                            bool first_has_returned) {
  std::string text;
  for (std::size_t rank = 0; rank < std::min(places.size(), kMostRanks); ++rank) {
    if (rank > 0) text += "; ";
    if (rank == 0 && first_has_returned) {
      text += "rank 0 has returned";
      continue;
    }
    const auto sign = rank < signs.size() ? signs[rank] : troupe::detail::RankSign{};
    const auto process = sign.process == 0 ? "" : fmt::format("process {} ", sign.process);
    text += fmt::format("rank {} ({}on {}) {}", rank, process, places[rank].node, said(sign));
  }
  if (places.size() > kMostRanks)
    text += fmt::format("; and {}", counted(places.size() - kMostRanks, "more rank"));
  return text;
}

}  // namespace troupe::tune
