#include "progress/progress_line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "config/name.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kMostLabel = 24;
constexpr std::size_t kMostMetric = 20;
constexpr std::size_t kMostUnit = 12;
constexpr std::size_t kLeastBar = 10;
constexpr std::size_t kMostBar = 40;
constexpr std::string_view kBetween = "  ";

/// Characters, as UTF-8 counts them: what a terminal shows of most scripts in as many columns.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

/// The first of that many.
std::string_view beginning(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if ((text[at] & 0xc0) != 0x80 && seen++ == columns) break;
  }
  return text.substr(0, at);
}

std::string cut(std::string_view text, std::size_t most) {
  const auto clean = config::printable(text);
  if (columns_of(clean) <= most) return clean;
  return fmt::format("{}..", beginning(clean, most - 2));
}

std::string with_thousands(std::int64_t value) {
  auto digits = fmt::format("{}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

/// The parts of a line, each empty where there is nothing to say.
struct Parts {
  std::string label;
  std::string at;  // "epoch 2/10"
  bool has_bar = false;
  double fraction = 0;
  std::string rate;
  std::string elapsed;
  std::string left;
  std::vector<std::string> metrics;
  std::string end;
};

std::string bar_of(double fraction, std::size_t width) {
  const auto full = static_cast<std::size_t>(fraction * static_cast<double>(width));
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(width - full, '.'));
}

/// `bar` 0: without one.
std::string joined(const Parts& parts, std::size_t bar) {
  std::vector<std::string> words{parts.label};
  const auto percent =
      parts.has_bar ? fmt::format("{:3}%", std::floor(parts.fraction * 100)) : std::string();
  const auto drawn = bar > 0 ? fmt::format("{} {}", bar_of(parts.fraction, bar), percent) : percent;
  words.push_back(parts.at.empty() || drawn.empty() ? parts.at + drawn
                                                    : fmt::format("{} {}", parts.at, drawn));
  words.insert(words.end(), {parts.rate, parts.elapsed, parts.left});
  words.insert(words.end(), parts.metrics.begin(), parts.metrics.end());
  words.push_back(parts.end);
  std::string line;
  for (const auto& word : words) {
    if (word.empty()) continue;
    if (!line.empty()) line += kBetween;
    line += word;
  }
  return line;
}

/// "epoch 2/10", "300/1,000 steps", "3 reports".
std::string place_of(const ProgressView& view) {
  const auto& progress = view.estimate.progress();
  if (progress.epochs > 0)
    return fmt::format("epoch {}/{}", std::min(progress.epoch, progress.epochs), progress.epochs);
  if (progress.epoch > 0) return fmt::format("epoch {}", progress.epoch);
  if (!progress.unit.empty()) {
    const auto total = progress.total > 0 ? "/" + with_thousands(progress.total) : std::string();
    return fmt::format("{}{} {}", with_thousands(progress.done), total,
                       cut(progress.unit, kMostUnit));
  }
  return fmt::format("{} report{}", view.reports, view.reports == 1 ? "" : "s");
}

std::string rate_of(const ProgressView& view) {
  const auto& estimate = view.estimate;
  const auto rows = view.has_ended ? estimate.mean_rows_per_s() : estimate.rows_per_s();
  if (rows) return fmt::format("{} rows/s", short_number(*rows));
  const auto steps = view.has_ended ? estimate.mean_steps_per_s() : estimate.steps_per_s();
  if (!steps) return {};
  return fmt::format("{} {}/s", short_number(*steps), cut(estimate.progress().unit, kMostUnit));
}

Parts parts_of(const ProgressView& view, double now) {
  Parts parts;
  parts.label = cut(view.label, kMostLabel);
  parts.at = place_of(view);
  const auto fraction = view.estimate.fraction();
  parts.has_bar = fraction.has_value();
  parts.fraction = fraction.value_or(0);
  parts.rate = rate_of(view);
  parts.elapsed = clock_time(view.elapsed_s);
  const auto left = view.has_ended ? std::nullopt : view.estimate.seconds_left(now);
  if (left) parts.left = fmt::format("ETA {}", clock_time(*left));
  for (const auto& metric : view.metrics)
    parts.metrics.push_back(fmt::format("{} {:.4g}", cut(metric.name, kMostMetric), metric.value));
  if (view.is_stopped) parts.end = "stopped";
  return parts;
}

}  // namespace

std::string render_progress(const ProgressView& view, double now, std::size_t columns) {
  auto parts = parts_of(view, now);
  const auto least = parts.has_bar ? kLeastBar : 0;
  const auto fits = [&](std::size_t bar) { return columns_of(joined(parts, bar)) <= columns; };
  while (!parts.metrics.empty() && !fits(least)) parts.metrics.pop_back();
  if (!fits(least)) parts.elapsed.clear();
  if (!fits(least)) parts.label.clear();
  if (!fits(least)) {
    if (!fits(0)) parts.rate.clear();
    return std::string(beginning(joined(parts, 0), columns));
  }
  if (!parts.has_bar) return joined(parts, 0);
  const auto room = columns - columns_of(joined(parts, kLeastBar));
  return joined(parts, std::min(kMostBar, kLeastBar + room));
}

std::string short_number(double value) {
  if (value >= 1e15) return fmt::format("{:.3g}", value);
  if (value >= 99.95) return with_thousands(std::llround(value));
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return value >= 0.1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

std::string clock_time(double seconds) {
  if (!(seconds < 1e9)) return "?";
  const auto all = static_cast<std::int64_t>(std::max(0.0, seconds));
  const auto minutes = all / 60 % 60;
  const auto hours = all / 3600 % 24;
  if (all < 3600) return fmt::format("{}:{:02}", minutes, all % 60);
  if (all < 86'400) return fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60);
  return fmt::format("{} d {:02}:{:02}:{:02}", all / 86'400, hours, minutes, all % 60);
}

std::string label_of_function(std::string_view function) {
  const auto arguments = function.ends_with('>') ? function.find('<') : std::string_view::npos;
  const auto name = function.substr(0, arguments);
  const auto colons = name.rfind("::");
  return std::string(colons == std::string_view::npos ? name : name.substr(colons + 2));
}

}  // namespace troupe::train
