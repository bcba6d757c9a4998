#include "store/catalog/pins.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "store/catalog/require.hpp"

namespace troupe::store {

std::uint32_t PinCounts::of(ProcessId process) const {
  const auto at = std::ranges::lower_bound(pins_, process, {}, &Pin::process);
  return at == pins_.end() || at->process != process ? 0 : at->count;
}

void Pins::pin(ObjectId object, PinCounts& counts, ProcessId by) {
  auto& pins = counts.pins_;
  const auto at = std::ranges::lower_bound(pins, by, {}, &PinCounts::Pin::process);
  if (at != pins.end() && at->process == by) {
    ++at->count;
    return;
  }
  pins.insert(at, {by, 1});
  of_process_[by].insert(object);
}

bool Pins::unpin(ObjectId object, PinCounts& counts, ProcessId by, std::uint32_t count) {
  auto& pins = counts.pins_;
  const auto at = std::ranges::lower_bound(pins, by, {}, &PinCounts::Pin::process);
  if (at == pins.end() || at->process != by) return false;
  at->count -= std::min(at->count, count);
  if (at->count > 0) return false;
  pins.erase(at);
  of_process_.at(by).erase(object);
  return true;
}

bool Pins::has_any(ProcessId process) const {
  const auto found = of_process_.find(process);
  return found != of_process_.end() && !found->second.empty();
}

std::vector<ObjectId> Pins::of(ProcessId process) const {
  const auto found = of_process_.find(process);
  if (found == of_process_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Pins::forget(ProcessId process) {
  assert(!has_any(process));
  of_process_.erase(process);
}

void Pins::check(ObjectId object, const PinCounts& counts) const {
  ProcessId last{};
  for (const auto& [process, count] : counts) {
    const auto name = fmt::format("the pin of object {} by process {}", to_string(object), process);
    require(count > 0, name + " counts nothing");
    require(process > last, name + " is listed twice or out of order");
    last = process;
    const auto found = of_process_.find(process);
    require(found != of_process_.end() && found->second.contains(object),
            name + " is unknown to the process");
  }
}

void Pins::check_total(std::size_t pins) const {
  std::size_t known = 0;
  for (const auto& [process, objects] : of_process_) known += objects.size();
  require(known == pins,
          fmt::format("{} pins are listed with objects, and {} with processes", pins, known));
}

}  // namespace troupe::store
