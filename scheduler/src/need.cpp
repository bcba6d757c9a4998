#include <troupe/scheduler/need.hpp>

#include <fmt/format.h>

namespace troupe::scheduler {

std::string to_string(const Need& need) {
  auto text = to_string(need.resources);
  for (std::size_t i = 0; i < need.labels.size(); ++i) {
    const auto& [key, value] = need.labels[i];
    text += fmt::format("{}{}={}", i == 0 ? " with label " : ", ", key, value);
  }
  return text;
}

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::Pack:
      return "pack";
    case Strategy::Spread:
      return "spread";
    case Strategy::StrictPack:
      return "strict pack";
    case Strategy::StrictSpread:
      return "strict spread";
  }
  return "unknown";
}

}  // namespace troupe::scheduler
