#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/icl/interval_set.hpp>

#include "store/types.hpp"

namespace troupe::store {

/// Whose objects lie on a node: who frees them, and what is to be said and freed when an owner or a
/// writer ends. An owner may be on any node; a writer is on this one. A value.
///
///   [alive, or unknown] --end--> [ended] --returns: it has connected again--> [alive]
///
/// 1. An object has one owner, and is its own until it is freed.
/// 2. What a writer leaves for others is what it wrote, others own, and nobody has freed.
/// 3. An owner that has ended owns nothing, as soon as what end() named is removed.
/// 4. Nothing is known of an owner without objects, nor of a writer whose end was told; of owners
///    that have ended, the ranges of their numbers.
///
/// Cost: O(1), O(log gaps) for has_ended().
class Owners {
 public:
  /// `writer` none: nobody has to be told what it leaves, as of copies.
  void add(ObjectId object, ProcessId owner, ProcessId writer);
  /// It was freed. The arguments are those of its add().
  void remove(ObjectId object, ProcessId owner, ProcessId writer);

  /// -> its objects, which are to be freed now, each with remove().
  std::vector<ObjectId> end(ProcessId owner);
  bool has_ended(ProcessId owner) const { return boost::icl::contains(ended_, owner.value()); }
  /// It is alive after all: its socket broke, and it has connected again.
  void returns(ProcessId owner) { ended_.erase(owner.value()); }

  /// The writer has ended. -> what it leaves for others, by owner: they may not have been told of
  /// it.
  std::map<ProcessId, std::vector<ObjectId>> end_writer(ProcessId writer);

  bool owns(ProcessId owner, ObjectId object) const;
  std::size_t size() const;  ///< all objects that are not freed; O(owners)
  /// Throws std::logic_error where an invariant does not hold; for tests, O(n)
  void check() const;

 private:
  std::unordered_map<ProcessId, std::unordered_set<ObjectId>> owned_;
  // By writer; -> owner.
  std::unordered_map<ProcessId, std::unordered_map<ObjectId, ProcessId>> for_others_;
  // Of process ids, which are given once, in order: few ranges.
  boost::icl::interval_set<std::uint64_t> ended_;
};

}  // namespace troupe::store
