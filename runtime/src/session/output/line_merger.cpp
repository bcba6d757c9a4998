#include "session/output/line_merger.hpp"

#include <utility>

namespace troupe::runtime {

std::vector<LineMerger::Merged> LineMerger::take(OutputLine line, Time now) {
  auto out = due(now);
  if (const auto known = by_text_.find(line.text); known != by_text_.end()) {
    auto& entry = *known->second;
    entry.processes.insert(line.process);
    if (entry.processes.size() == 1) {
      out.push_back({.line = std::move(line)});
      return out;
    }
    ++entry.times;
    entry.held_of.insert(line.process);
    if (!line.label.empty() && entry.labels.size() <= kMostLabels) entry.labels.insert(line.label);
    entry.held = std::move(line);
    return out;
  }
  if (entries_.size() == kMost) {
    settle(entries_.front(), out);
    forget_oldest();
  }
  entries_.push_back({.text = line.text,
                      .since = now,
                      .processes = {line.process},
                      .held = {},
                      .times = 0,
                      .held_of = {},
                      .labels = {}});
  by_text_.emplace(entries_.back().text, std::prev(entries_.end()));
  out.push_back({.line = std::move(line)});
  return out;
}

void LineMerger::settle(Entry& entry, std::vector<Merged>& out) {
  if (!entry.held) return;
  const auto labels = std::exchange(entry.labels, {});
  out.push_back({.line = std::move(*entry.held),
                 .times = std::exchange(entry.times, 0),
                 .processes = entry.held_of.size()});
  auto& merged = out.back();
  if (merged.processes > 1) merged.labels.assign(labels.begin(), labels.end());
  if (merged.labels.size() > kMostLabels) merged.labels.back() = "...";
  entry.held.reset();
  entry.processes = std::exchange(entry.held_of, {});
}

void LineMerger::forget_oldest() {
  by_text_.erase(entries_.front().text);
  entries_.pop_front();
}

/// A line that was counted is remembered for another window, behind all others.
std::vector<LineMerger::Merged> LineMerger::due(Time now) {
  std::vector<Merged> out;
  while (!entries_.empty() && entries_.front().since + kWindow <= now) {
    auto& oldest = entries_.front();
    if (!oldest.held) {
      forget_oldest();
      continue;
    }
    settle(oldest, out);
    oldest.since = now;
    entries_.splice(entries_.end(), entries_, entries_.begin());
  }
  return out;
}

std::vector<LineMerger::Merged> LineMerger::rest() {
  std::vector<Merged> out;
  for (auto& entry : entries_) settle(entry, out);
  by_text_.clear();
  entries_.clear();
  return out;
}

std::optional<LineMerger::Time> LineMerger::next() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front().since + kWindow;
}

}  // namespace troupe::runtime
