#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace troupe::launch {

/// What the ranks of a gang of programs have put down for one another, by scope and key, as Horovod
/// meets with Gloo (horovod/common/gloo/http_store.cc). Pure; used by one thread.
///
/// 1. A key has the value that was put last.
/// 2. A scope is empty again once each of its keys was finished: ranks that meet anew under the same
///    scope do not find what was valid before.
/// 3. Scopes, keys and values take `room` bytes at most, each key at a price of kPerKey besides. A
///    value that does not fit changes nothing.
class RendezvousStore {
 public:
  static constexpr std::size_t kPerKey = 256;

  explicit RendezvousStore(std::size_t room) : room_(room) {}

  /// -> false: there is no room.
  bool put(const std::string& scope, const std::string& key, std::string value);
  /// -> nullptr: it was not put. Valid until the next call.
  const std::string* get(const std::string& scope, const std::string& key) const;
  /// Whoever put the key needs the scope no more. Without effect on a key that is not there.
  void finish(const std::string& scope, const std::string& key);

  std::size_t used() const { return used_; }

 private:
  struct Entry {
    std::string value;
    bool is_finished = false;
  };
  struct Scope {
    std::map<std::string, Entry> entries;
    std::size_t finished = 0;
    std::size_t bytes = 0;
  };

  const std::size_t room_;
  std::size_t used_ = 0;
  std::map<std::string, Scope> scopes_;
};

}  // namespace troupe::launch
