#include "words.hpp"

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

}  // namespace troupe::cli
