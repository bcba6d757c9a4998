#include "host/rendezvous_store.hpp"

#include <utility>

namespace troupe::launch {

bool RendezvousStore::put(const std::string& scope, const std::string& key, std::string value) {
  const auto there = scopes_.find(scope);
  const Entry* before = nullptr;
  if (there != scopes_.end()) {
    const auto found = there->second.entries.find(key);
    if (found != there->second.entries.end()) before = &found->second;
  }
  const auto price = [&](const std::string& of) {
    return scope.size() + key.size() + of.size() + kPerKey;
  };
  const auto freed = before != nullptr ? price(before->value) : 0;
  const auto taken = price(value);
  if (used_ - freed + taken > room_) return false;
  used_ = used_ - freed + taken;
  auto& in = scopes_[scope];
  in.bytes = in.bytes - freed + taken;
  auto& entry = in.entries[key];
  if (std::exchange(entry.is_finished, false)) --in.finished;
  entry.value = std::move(value);
  return true;
}

const std::string* RendezvousStore::get(const std::string& scope, const std::string& key) const {
  const auto in = scopes_.find(scope);
  if (in == scopes_.end()) return nullptr;
  const auto found = in->second.entries.find(key);
  return found == in->second.entries.end() ? nullptr : &found->second.value;
}

void RendezvousStore::finish(const std::string& scope, const std::string& key) {
  const auto in = scopes_.find(scope);
  if (in == scopes_.end()) return;
  const auto found = in->second.entries.find(key);
  if (found == in->second.entries.end()) return;
  if (!std::exchange(found->second.is_finished, true)) ++in->second.finished;
  if (in->second.finished < in->second.entries.size()) return;
  used_ -= in->second.bytes;
  scopes_.erase(in);
}

}  // namespace troupe::launch
