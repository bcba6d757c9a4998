#include "train/rates.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::bench {
namespace {

/// The name of a GPU has all these words.
struct Peak {
  std::array<std::string_view, 2> words;
  double tflops;
};
// The first that fits counts: a form of a GPU comes before the others of its name.
constexpr Peak kPeaks[] = {
    {{"H100", "NVL"}, 835}, {{"H100", "PCIe"}, 756}, {{"H100", ""}, 989}, {{"H200", "NVL"}, 835},
    {{"H200", ""}, 989},    {{"A100", ""}, 312},     {{"A30", ""}, 165},  {{"A40", ""}, 150},
    {{"A10", ""}, 125},     {{"L40S", ""}, 362},     {{"L40", ""}, 181},  {{"L4", ""}, 121},
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find_first_of(" -", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

Bandwidth bandwidth_of_all_reduce(std::size_t bytes, double seconds, int ranks) {
  const double algorithm = static_cast<double>(bytes) / seconds / 1e9;
  return {.algorithm = algorithm, .bus = algorithm * 2 * (ranks - 1) / ranks};
}

double flops_per_token(const GptSize& size) {
  const auto layers = static_cast<double>(size.layers), width = static_cast<double>(size.width);
  const double multiplied =
      12 * layers * width * width + static_cast<double>(size.vocabulary) * width;
  return 6 * multiplied + 12 * layers * width * static_cast<double>(size.context);
}

std::optional<double> peak_tflops_of(std::string_view name) {
  const auto words = words_of(name);
  const auto has = [&](std::string_view word) {
    return word.empty() || std::ranges::find(words, word) != words.end();
  };
  if (std::ranges::find(words, "MIG") != words.end()) return std::nullopt;
  for (const auto& peak : kPeaks) {
    if (std::ranges::all_of(peak.words, has)) return peak.tflops;
  }
  return std::nullopt;
}

std::optional<double> Computing::share() const {
  if (!peak) return std::nullopt;
  return tflops / *peak;
}

std::string Computing::text() const {
  if (!peak)
    return fmt::format("{:.0f} TFLOP/s, peak of '{}' unknown: name it with --peak-tflops", tflops,
                       gpu);
  return fmt::format("{:.0f} TFLOP/s, {:.0f} % of {:.0f}", tflops, 100 * *share(), *peak);
}

Computing computing(const GptSize& size, double tokens, double steps_per_s, int ranks, int gpus,
                    std::string gpu, double peak) {
  const double ranks_of_gpu = std::max(1.0, static_cast<double>(ranks) / std::max(gpus, 1));
  return {.tflops = ranks_of_gpu * steps_per_s * tokens * flops_per_token(size) / 1e12,
          .peak = peak > 0 ? std::optional(peak) : peak_tflops_of(gpu),
          .gpu = std::move(gpu)};
}

}  // namespace troupe::bench
