#include "sweep/trial_reports.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <troupe/tune/detail/program_words.hpp>

#include "config/name.hpp"

namespace troupe::launch {

TrialReports::TrialReports(Options options)
    : options_(std::move(options)), reader_(options_.pattern), events_(options_.event_folder) {}

bool TrialReports::has_metric(const Metrics& metrics) {
  const auto is_it = [this](const Metric& metric) { return metric.name == options_.metric; };
  if (std::ranges::any_of(metrics, is_it)) return has_any_ = true;
  for (const auto& metric : metrics) others_.insert(metric.name);
  return false;
}

std::optional<ReportLine> TrialReports::in_line(std::string_view line) {
  auto found = reader_.read(line);
  if (!found.notice.empty() && notices_.insert(found.notice).second)
    notice_ += (notice_.empty() ? "" : "; ") + found.notice;
  if (found.report && !has_metric(found.report->metrics)) found.report.reset();
  return std::move(found.report);
}

std::vector<ReportLine> TrialReports::in_event_files(bool now) {
  std::vector<ReportLine> reports;
  for (auto& metrics : events_.read(options_.metric, now)) {
    if (has_metric(metrics)) reports.push_back({std::move(metrics), {}});
  }
  return reports;
}

std::string TrialReports::take_notice() { return std::exchange(notice_, {}); }

std::string TrialReports::why_none(const std::string& log) const {
  const auto ended = fmt::format("{}'{}', ", tune::detail::kEndedUnreported, options_.metric);
  if (!others_.empty()) {
    return fmt::format("{}its reports have {}: `metric` in the sweep's file names one of them",
                       ended, config::printable(fmt::format("{}", fmt::join(others_, ", "))));
  }
  std::string way = fmt::format(R"(print a line `troupe: {{"{}": 0.5}}`)", options_.metric);
  if (!options_.pattern.empty()) way = "[reports] pattern matched nothing that it printed";
  if (!options_.event_folder.empty())
    way = "its event files in [reports] tensorboard have no such scalar";
  for (const auto& notice : notices_) way += "; " + notice;
  if (!log.empty()) way += fmt::format("; {}{}", tune::detail::kOutputIsIn, log);
  return fmt::format("{}and has no other: {}", ended, way);
}

}  // namespace troupe::launch
