#include "plan/words.hpp"

#include <fmt/format.h>

namespace troupe::train {
namespace {

std::string with_commas(std::uint64_t number) {
  auto digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace

std::string in_gb(std::uint64_t bytes) {
  constexpr std::uint64_t kGb = 1'000'000'000;
  if (bytes >= 999'950'000'000) return with_commas(bytes / kGb + (bytes % kGb >= kGb / 2 ? 1 : 0));
  const auto gb = static_cast<double>(bytes) / kGb;
  if (gb >= 9.995) return fmt::format("{:.1f}", gb);
  if (bytes == 0) return "0";
  return gb < 0.01 ? "<0.01" : fmt::format("{:.2f}", gb);
}

std::string count_in_words(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 999.95e6) return fmt::format("{:.1f} billion", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.1f} million", number / 1e6);
  return with_commas(count);
}

std::string name_of(const ZeroOptions& zero) {
  auto name = fmt::format("stage {}", zero.stage);
  if (zero.offload_parameters) return name + ", all offloaded";
  if (zero.offload_optimizer) name += ", optimizer offloaded";
  return name;
}

std::string code_of(const ZeroOptions& zero) {
  return fmt::format(".zero = {{.stage = {}{}{}}}", zero.stage,
                     zero.offload_optimizer ? ", .offload_optimizer = true" : "",
                     zero.offload_parameters ? ", .offload_parameters = true" : "");
}

}  // namespace troupe::train
