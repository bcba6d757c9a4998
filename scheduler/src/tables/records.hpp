#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "tables/slab.hpp"

namespace troupe::scheduler {

/// Asks for the memory of a record (or the first `bytes` of it) that is needed soon, so that the
/// wait for it goes by beside other work.
template <class Record>
void fetch(const Record* record, std::size_t bytes = sizeof(Record)) {
  for (std::size_t at = 0; at < bytes; at += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(record) + at);
}

/// Records of one kind by their ids. They do not move. Ids are given out in turn, and the records
/// of 16 neighbours lie in one page of memory, which is kept while one of them is there: a million
/// of them are mostly cold, and what is made together is found together, by one look at an index
/// that is small. Cost: O(1); what is left of a page that its neighbours have gone from takes the
/// room of all.
template <class Id, class Record>
class Records {
 public:
  Records() = default;
  Records(const Records&) = delete;
  ~Records() {
    for (auto* record : all()) record->~Record();
  }

  std::size_t size() const { return size_; }
  bool contains(Id id) const { return find(id) != nullptr; }
  /// nullptr if there is none.
  Record* find(Id id) const {
    auto* page = page_at(id.value() / kPage);
    return page == nullptr ? nullptr : page->find(id.value() % kPage);
  }
  /// Asserts that it is there.
  Record& at(Id id) const {
    auto* record = find(id);
    assert(record != nullptr);
    return *record;
  }
  /// A new one, with its id. Asserts that there is none.
  Record& make(Id id) {
    const auto number = static_cast<PageNumber>(id.value() / kPage);
    auto* page = page_at(number);
    if (page == nullptr) {
      page = new (slab_.take()) Page;
      pages_.emplace(number, page);
    }
    last_ = {number, page};
    const auto index = id.value() % kPage;
    assert(page->find(index) == nullptr);
    auto& record = *new (page->place(index)) Record{};
    record.id = id;
    page->there |= 1U << index;
    ++size_;
    return record;
  }
  void erase(Record& record) {
    const auto id = record.id;
    const auto index = id.value() % kPage;
    auto* page = page_of(record);
    record.~Record();
    page->there &= ~(1U << index);
    --size_;
    if (page->there != 0) return;
    if (page == last_.page) last_ = {};
    pages_.erase(id.value() / kPage);
    slab_.give(page);
  }
  /// Asks for what erasing it will look at.
  static void fetch_place(Record& record) { __builtin_prefetch(&page_of(record)->there); }
  /// In no order that may show.
  std::vector<Record*> all() const {
    std::vector<Record*> all;
    all.reserve(size_);
    for (const auto& [number, page] : pages_) {
      for (std::size_t index = 0; index < kPage; ++index) {
        if (auto* record = page->find(index)) all.push_back(record);
      }
    }
    return all;
  }

 private:
  using PageNumber = decltype(Id{}.value());
  static constexpr std::size_t kPage = 16;
  static constexpr std::size_t kCacheLine = 64;
  struct Page {
    // In front, so that a record leads to its page.
    alignas(kCacheLine) std::array<std::byte, kPage * sizeof(Record)> memory;
    std::uint32_t there = 0;  // a bit for each record

    Record* place(std::size_t index) { return reinterpret_cast<Record*>(memory.data()) + index; }
    Record* find(std::size_t index) {
      return (there >> index & 1U) != 0 ? std::launder(place(index)) : nullptr;
    }
  };

  static Page* page_of(Record& record) {
    return reinterpret_cast<Page*>(&record - record.id.value() % kPage);
  }

  Page* page_at(PageNumber number) const {
    if (number == last_.number && last_.page != nullptr) return last_.page;
    const auto page = pages_.find(number);
    return page == pages_.end() ? nullptr : page->second;
  }

  boost::unordered_flat_map<PageNumber, Page*> pages_;
  struct {
    PageNumber number = 0;
    Page* page = nullptr;
  } last_;  // that a record was made in: mostly the next one goes there too
  Slab<Page> slab_;
  std::size_t size_ = 0;
};

}  // namespace troupe::scheduler
