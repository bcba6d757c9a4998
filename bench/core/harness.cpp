#include "harness.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::bench {
namespace {

constexpr std::size_t kRounds = 4;  // at least, as the peer's program

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// Three digits after the point at most, and four that count.
std::string readable(double value) {
  const auto size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

}  // namespace

bool Report::wants(std::string_view name) const {
  const auto& whole = *asked_.emplace(name).first;
  std::istringstream patterns(options_.only);
  for (std::string pattern; std::getline(patterns, pattern, ',');) {
    if (fnmatch(pattern.c_str(), whole.c_str(), 0) == 0) return matched_ = true;
  }
  return false;
}

bool Report::wants_any(std::span<const std::string_view> names) const {
  return std::ranges::any_of(names, [this](auto name) { return wants(name); });
}

void Report::print(const std::string& name, double value, const std::string& unit,
                   const std::string& note) const {
  if (options_.json) {
    nlohmann::json line{{"name", name}, {"value", value}, {"unit", unit}};
    if (!note.empty()) line["note"] = note;
    std::cout << line << std::endl;
  } else {
    std::cout << fmt::format("{:<28} {:>14} {:<6} {}", name, readable(value), unit, note)
              << std::endl;
  }
}

void Report::missing(const std::string& name, const std::string& unit,
                     const std::string& why) const {
  if (options_.json) {
    std::cout << nlohmann::json{{"name", name}, {"value", nullptr}, {"unit", unit}, {"note", why}}
              << std::endl;
  } else {
    std::cout << fmt::format("{:<28} {:>14} {:<6} {}", name, "-", unit, why) << std::endl;
  }
}

std::vector<double> Report::repeat(double amount, const std::function<double()>& round) const {
  round();
  std::vector<double> rates;
  const auto start = Clock::now();
  const auto least = smoke() ? 1 : kRounds;
  while (rates.size() < least || seconds_since(start) < options_.seconds)
    rates.push_back(amount / round());
  return rates;
}

void Report::rate_of(const std::string& name, const std::string& unit, double amount,
                     const std::function<double()>& round) const {
  if (wants(name)) print(name, mean(repeat(amount, round)), unit);
}

void Report::rate(const std::string& name, const std::string& unit, double amount,
                  const std::function<void()>& round) const {
  rate_of(name, unit, amount, [&] {
    const auto start = Clock::now();
    round();
    return seconds_since(start);
  });
}

void Report::latency(const std::string& name, int count,
                     const std::function<void()>& operation) const {
  if (!wants(name)) return;
  std::vector<double> micros;
  const auto rates = repeat(count, [&] {
    const auto start = Clock::now();
    for (auto [before, i] = std::pair{start, 0}; i < count; ++i) {
      operation();
      const auto now = Clock::now();
      micros.push_back(std::chrono::duration<double, std::micro>(now - before).count());
      before = now;
    }
    return seconds_since(start);
  });
  print(name, mean(rates), "1/s");
  micros.erase(micros.begin(), micros.begin() + count);  // of the round to warm up
  std::ranges::sort(micros);
  print(name + "_p50_us", percentile(micros, 0.5), "us");
  print(name + "_p99_us", percentile(micros, 0.99), "us");
  print(name + "_p999_us", percentile(micros, 0.999), "us");
}

}  // namespace troupe::bench
