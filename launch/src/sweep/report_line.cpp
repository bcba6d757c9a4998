#include "sweep/report_line.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/regex.hpp>
#include <nlohmann/json.hpp>

#include "config/name.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

constexpr std::string_view kPrefix = "troupe:";

/// As Python, C and LibTorch print numbers: 0.1, 1e-3, nan, inf.
std::optional<double> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return std::strtod(std::string(text).c_str(), nullptr);
  return value;
}

/// NaN and Infinity, which Python writes, as text; within strings too, which no metric needs.
std::string readable(std::string_view text) {
  static const boost::regex special(R"((-?)\b(NaN|Infinity)\b)");
  return boost::regex_replace(std::string(text), special, "\"$1$2\"");
}

/// Calls `refuse` with the reason, which throws or is followed by nothing, where the text is none.
std::optional<ReportLine> parse(std::string_view text,
                                const std::function<void(const std::string&)>& refuse) {
  // Python's json module writes what is not finite as NaN and Infinity, which JSON has not.
  const auto json = nlohmann::json::parse(readable(text), nullptr, false);
  if (json.is_discarded()) return refuse("it is no JSON"), std::nullopt;
  if (!json.is_object()) return refuse("it is no object"), std::nullopt;
  ReportLine report;
  for (const auto& [name, value] : json.items()) {
    if (name == "checkpoint" && value.is_string()) {
      report.checkpoint = value.get<std::string>();
    } else if (value.is_boolean()) {
      report.metrics.emplace_back(name.c_str(), value.get<bool>() ? 1 : 0);
    } else if (value.is_number()) {
      report.metrics.emplace_back(name.c_str(), value.get<double>());
    } else if (const auto special =
                   value.is_string() ? number(value.get<std::string>()) : std::nullopt) {
      report.metrics.emplace_back(name.c_str(), *special);  // "nan"
    } else {
      return refuse(fmt::format("'{}' is no number", config::printable(name))), std::nullopt;
    }
  }
  if (report.metrics.empty()) return refuse("it has no metric"), std::nullopt;
  return report;
}

/// Of a line that begins as a report.
std::optional<ReportLine> parse_whole(std::string_view line) {
  return parse(line.substr(kPrefix.size()), [line](const std::string& why) {
    throw std::invalid_argument(fmt::format(
        "the program printed '{}', which is no report ({}): print it as troupe: {{\"loss\": 0.1}}",
        config::printable(line), why));
  });
}

/// Of a line that begins otherwise, as `epoch 3 ...troupe: {"loss": 0.1}`. What looks like a report
/// there may be anything.
std::optional<ReportLine> parse_within(std::string_view line) {
  const auto at = line.rfind(kPrefix);
  if (at == std::string_view::npos) return std::nullopt;
  return parse(line.substr(at + kPrefix.size()), [](const std::string&) {});
}

}  // namespace

struct ReportReader::Pattern {
  boost::regex expression;
  std::vector<std::string> groups;
};

ReportReader::ReportReader(const std::string& pattern) {
  if (pattern.empty()) return;
  pattern_ = std::make_unique<Pattern>();
  try {
    pattern_->expression = boost::regex(pattern, boost::regex::perl | boost::regex::optimize);
  } catch (const boost::regex_error& error) {
    refuse(fmt::format("the pattern '{}' is no regular expression: {} (at character {})",
                       config::printable(pattern), error.what(), error.position() + 1));
  }
  static const boost::regex group(R"(\(\?<([A-Za-z_]\w*)>)");
  std::set<std::string> names;
  for (boost::sregex_iterator found(pattern.begin(), pattern.end(), group), end; found != end;
       ++found)
    names.insert((*found)[1]);
  pattern_->groups.assign(names.begin(), names.end());
  if (names.empty()) {
    refuse(
        fmt::format("the pattern '{}' names no metric: write (?<loss>[0-9.e+-]+) where "
                    "the value of loss stands",
                    config::printable(pattern)));
  }
}
ReportReader::~ReportReader() = default;
ReportReader::ReportReader(ReportReader&&) noexcept = default;

bool ReportReader::finds(const std::string& metric) const {
  return pattern_ && std::ranges::find(pattern_->groups, metric) != pattern_->groups.end();
}

ReportReader::Found ReportReader::read(std::string_view line) const {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (const auto at = line.rfind('\r'); at != std::string_view::npos) line.remove_prefix(at + 1);
  if (line.starts_with(kPrefix)) return {.report = parse_whole(line), .notice = {}};
  if (auto report = parse_within(line)) return {.report = std::move(report), .notice = {}};
  if (!pattern_) return {};
  return search(line);
}

ReportReader::Found ReportReader::search(std::string_view line) const {
  Found result;
  if (line.size() > kLongestSearched) {
    line = line.substr(0, kLongestSearched);
    result.notice = fmt::format(
        "a line is longer than {} KiB, and [reports] pattern was searched for only in "
        "so much of it",
        kLongestSearched >> 10);
  }
  boost::match_results<std::string_view::const_iterator> found;
  try {
    if (!boost::regex_search(line.begin(), line.end(), found, pattern_->expression)) return result;
  } catch (const std::runtime_error&) {  // it has taken more steps than Boost.Regex allows
    result.notice =
        "[reports] pattern takes too long to search for in a line, which was passed over: make it "
        "say more precisely what stands before the value";
    return result;
  }
  ReportLine report;
  for (const auto& name : pattern_->groups) {
    const auto& group = found[name];
    if (!group.matched) continue;
    const auto value = number({&*group.first, static_cast<std::size_t>(group.length())});
    if (value) {
      report.metrics.emplace_back(name.c_str(), *value);
    } else {
      result.notice = fmt::format(
          "group '{0}' of [reports] pattern found text that is no number, which was passed over: "
          "write (?<{0}>[0-9.e+-]+), which ends where the number does",
          name);
    }
  }
  if (!report.metrics.empty()) result.report = std::move(report);
  return result;
}

}  // namespace troupe::launch
