#include "output/html/metric_curves.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

/// The points of one curve, of which every second is dropped when there are too many, and the last
/// one.
class ThinnedCurve {
 public:
  static constexpr std::size_t kMost = 512;

  void add(std::int64_t t, const Json& value) {
    last_ = {t, value};
    if (count_++ % step_ != 0) return;
    points_.push_back(last_);
    if (points_.size() < kMost) return;
    for (std::size_t i = 0; i < points_.size() / 2; ++i) points_[i] = points_[2 * i];
    points_.resize(points_.size() / 2);
    step_ *= 2;
  }

  /// At most about so many.
  Json points(std::size_t most) const {
    auto all = Json::array();
    const auto every = std::max<std::size_t>(1, points_.size() / std::max<std::size_t>(most, 2));
    for (std::size_t i = 0; i < points_.size(); i += every)
      all.push_back({points_[i].t, points_[i].value});
    if (all.empty() || all.back() != Json{last_.t, last_.value})
      all.push_back({last_.t, last_.value});
    return all;
  }

 private:
  struct Point {
    std::int64_t t = 0;
    Json value = {};
  };
  std::vector<Point> points_ = {};
  Point last_ = {};
  std::size_t count_ = 0, step_ = 1;
};

using Curves = std::map<std::string, std::map<std::uint64_t, ThinnedCurve>>;

void add_report(Curves& curves, const Json& report, const std::string& searched) {
  if (!report.is_object() || !report.contains("metrics") || !report.at("metrics").is_object())
    return;
  const auto trial = report.value("trial", Json()), t = report.value("t", Json());
  if (!trial.is_number_unsigned() || !t.is_number_integer()) return;
  for (const auto& [name, value] : report.at("metrics").items()) {
    if (name == searched) continue;
    const bool is_finite = value.is_number() && std::isfinite(value.get<double>());
    curves[name][trial.get<std::uint64_t>()].add(t.get<std::int64_t>(), is_finite ? value : Json());
  }
}

}  // namespace

MetricCurves metric_curves(const std::filesystem::path& reports, const std::string& searched,
                           std::size_t most_points) {
  MetricCurves found;
  std::error_code none;
  const auto bytes = std::filesystem::file_size(reports, none);
  if (none) return found;
  if (bytes > MetricCurves::kMostBytes) {
    found.left_out =
        fmt::format("The curves of other metrics are left out: {} is longer than {} MiB.",
                    reports.filename().string(), MetricCurves::kMostBytes >> 20);
    return found;
  }
  Curves curves;
  std::ifstream file(reports);
  for (std::string line; std::getline(file, line);)
    add_report(curves, Json::parse(line, nullptr, false), searched);
  // A curve has two points at least.
  std::size_t count = 0, kept = 0;
  for (const auto& [name, of_trials] : curves) {
    if (2 * (count + of_trials.size()) > most_points) break;
    count += of_trials.size();
    ++kept;
  }
  if (kept < curves.size()) {
    found.left_out = fmt::format(
        "{} of {} other metrics can be chosen: there are too many trials for the curves of all.",
        kept, curves.size());
  }
  for (const auto& [name, of_trials] : curves) {
    if (found.metrics.size() == kept) break;
    auto each = Json::object();
    for (const auto& [trial, curve] : of_trials)
      each[std::to_string(trial)] = curve.points(most_points / count);
    found.metrics.push_back({{"name", name}, {"curves", std::move(each)}});
  }
  return found;
}

}  // namespace troupe::tune
