#include "words.hpp"

#include <fmt/format.h>

namespace troupe::cli {

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string in_words(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto most = joined({names.begin(), names.end() - 1}, ", ");
  return most.empty() ? names.back() : most + " and " + names.back();
}

std::string amount_text(const std::string& resource, double units) {
  return resource == "memory" ? fmt::format("memory {:.1f} GB", units)
                              : fmt::format("{} {:g}", resource, units);
}

}  // namespace troupe::cli
