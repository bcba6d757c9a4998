#include "run/launch/where.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include <troupe/detail/private_cluster.hpp>

#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kMostRanks = 4;

constexpr std::streamoff kMostBytes = 4096;  // of an output's end
constexpr std::size_t kMostShown = 200;      // columns of a line

/// The last line of the file that is not empty; empty: there is none, or no such file here.
std::string last_line_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kMostBytes));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = std::move(line);
  }
  return clipped(last, kMostShown);
}

/// Of a rank whose program prints to this file.
std::string printed_to(const std::filesystem::path& path) {
  const auto last = last_line_in(path);
  return last.empty() ? fmt::format("has printed no line to {}", path.string())
                      : fmt::format("last printed '{}'", last);
}

std::string said(const troupe::detail::RankSign& sign) {
  if (!sign.last_line.empty()) return fmt::format("last printed '{}'", sign.last_line);
  if (sign.process == 0) return "runs";
  if (troupe::detail::is_cluster_private()) return "has shown no line here";
  return fmt::format("has shown no line here (`troupe logs process {}` has its log)", sign.process);
}

}  // namespace

std::string where_it_stands(const std::vector<Place>& places,
                            const std::vector<troupe::detail::RankSign>& signs,
                            bool first_has_returned,
                            const std::vector<std::filesystem::path>& output_files) {
  std::string text;
  for (std::size_t rank = 0; rank < std::min(places.size(), kMostRanks); ++rank) {
    if (rank > 0) text += "; ";
    if (rank == 0 && first_has_returned) {
      text += "rank 0 has returned";
      continue;
    }
    const auto sign = rank < signs.size() ? signs[rank] : troupe::detail::RankSign{};
    const auto process = sign.process == 0 ? "" : fmt::format("process {} ", sign.process);
    text += fmt::format("rank {} ({}on {}) {}", rank, process, places[rank].node,
                        rank < output_files.size() ? printed_to(output_files[rank]) : said(sign));
  }
  if (places.size() > kMostRanks)
    text += fmt::format("; and {}", counted(places.size() - kMostRanks, "more rank"));
  return text;
}

}  // namespace troupe::tune
