#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::tasks {

/// What an entry of a WithdrawingQueue carries for it. One queue at a time.
struct Queued {
  bool queued = false;
  bool withdrawn = false;  // it is passed over
};

/// Entries (shared_ptr to an heir of Queued) that wait, in order. One is withdrawn without a
/// search, since any of a hundred thousand may be: it stays, and is passed over later. A value; no
/// lock of its own.
template <class T>
class WithdrawingQueue {
 public:
  using Entry = std::shared_ptr<T>;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return entries_.size() - withdrawn_; }
  const Entry& front() const { return entries_.front(); }

  void push_back(Entry entry) {
    entry->queued = true;
    entries_.push_back(std::move(entry));
  }
  void push_front(Entry entry) {
    entry->queued = true;
    entries_.push_front(std::move(entry));
  }
  Entry take_front() {
    auto entry = std::move(entries_.front());
    entries_.pop_front();
    entry->queued = false;
    tidy();
    return entry;
  }
  std::vector<Entry> take_all() {
    std::vector<Entry> all;
    while (!empty()) all.push_back(take_front());
    return all;
  }
  /// False: it is not in here.
  bool withdraw(T& entry) {
    if (!entry.queued || entry.withdrawn) return false;
    entry.withdrawn = true;
    ++withdrawn_;
    tidy();
    return true;
  }

 private:
  /// Those at the front go at once, all of them once they are half of what is here: each is looked
  /// at once or twice.
  void tidy() {
    while (!entries_.empty() && entries_.front()->withdrawn) {
      entries_.pop_front();
      --withdrawn_;
    }
    if (2 * withdrawn_ <= entries_.size()) return;
    std::erase_if(entries_, [](const Entry& entry) { return entry->withdrawn; });
    withdrawn_ = 0;
  }

  std::deque<Entry> entries_;  // the first one is not withdrawn
  std::size_t withdrawn_ = 0;
};

}  // namespace troupe::tasks
