#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

/// What a program that `troupe tune` searches the settings of says and is told. It stands alone: the
/// program need not be linked with Troupe. Without a sweep its calls do no harm.
namespace troupe::trial {

/// Whether this process runs as a trial of a sweep.
inline bool is_trial() { return std::getenv("TROUPE_TRIAL") != nullptr; }

/// The fields of the trial's configuration, as JSON; "{}" without a sweep.
inline std::string config() {
  const char* text = std::getenv("TROUPE_TRIAL_CONFIG");
  return text ? text : "{}";
}

/// The folder for checkpoints of this trial, which is there; empty without a sweep.
inline std::filesystem::path checkpoint_dir() {
  const char* folder = std::getenv("TROUPE_CHECKPOINT_DIR");
  return folder ? folder : "";
}

/// The checkpoint that this trial is to go on from, a folder; empty where it begins anew.
inline std::filesystem::path restore_from() {
  const char* folder = std::getenv("TROUPE_RESTORE_FROM");
  return folder ? folder : "";
}

namespace detail {

inline void append_text(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20)
      throw std::invalid_argument("a metric's name and a checkpoint have no control characters");
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

inline void append_number(std::string& line, double value) {
  if (!std::isfinite(value)) {
    line += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  char text[32];
  line.append(text, std::to_chars(text, text + sizeof text, value).ptr);  // of no locale
}

}  // namespace detail

/// Reports metrics: troupe::trial::report({{"loss", 0.1}, {"step", 3}}). `checkpoint`: a folder, whole
/// by now, from which the trial can go on; relative to checkpoint_dir(); empty: none. NaN and
/// infinity are worst for the sweep.
///
/// It is a line on standard output, flushed at once. Reports of ranks other than 0 count nowhere, and
/// are not printed. One thread at a time. Throws std::invalid_argument where there is no metric.
inline void report(std::initializer_list<std::pair<std::string_view, double>> metrics,
                   const std::filesystem::path& checkpoint = {}) {
  if (metrics.size() == 0)
    throw std::invalid_argument("there is nothing to report: give metrics, as {{\"loss\", 0.1}}");
  std::string line = "troupe: {";
  for (const auto& [name, value] : metrics) {
    if (line.back() != '{') line += ", ";
    detail::append_text(line, name);
    line += ": ";
    detail::append_number(line, value);
  }
  if (!checkpoint.empty()) {
    line += ", \"checkpoint\": ";
    detail::append_text(line, checkpoint.native());
  }
  line += "}\n";
  const char* rank = std::getenv("RANK");
  if (rank && std::string_view(rank) != "0") return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace troupe::trial
