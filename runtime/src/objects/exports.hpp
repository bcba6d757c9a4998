#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "ids/address.hpp"
#include "objects/object.hpp"
#include "store/types.hpp"
#include "wire/message.capnp.h"

namespace troupe::runtime {

/// The objects of this process that others hold refs to, and the way of refs through messages.
/// Belongs to the loop.
///
/// Counting: who sends a ref to process P adds one to P's account at the owner (itself, or by a
/// Borrow message); P takes one off when its last handle to that copy is gone. Messages from one
/// process arrive in order, and a sender drops its own handle only after it has sent, so an object
/// whose accounts are all zero has no borrower. An account may be below zero for a while (P was
/// faster than the Borrow): that is not zero either.
class Exports {
 public:
  struct Callbacks {
    AddressPtr self;
    std::function<void(const AddressPtr& owner, std::uint64_t object, ProcessId holder,
                       std::int64_t delta)>
        send_borrow;
    ReleaseBorrowed release = nullptr;
    /// The first object has a borrower, or the last one has none any more.
    std::function<void(bool any)> held = [](bool) {};
    std::function<bool(ProcessId)> has_ended = nullptr;
  };
  explicit Exports(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  /// `to` is about to receive this payload.
  void write(wire::Payload::Builder into, const detail::Payload& payload, const AddressPtr& to);
  detail::Payload read(wire::Payload::Reader from);
  /// `holder`'s account of `object` changes.
  void borrow(std::uint64_t object, ProcessId holder, std::int64_t delta);
  /// A process that has ended holds nothing.
  void forget(ProcessId holder);
  /// nullptr: this process has no such object (any more).
  detail::ObjectPtr find(std::uint64_t object) const;
  /// A handle of this stored value, which is our own, lives here.
  bool has_stored(store::ObjectId object) const;

 private:
  struct Entry {
    detail::ObjectPtr object;
    std::unordered_map<ProcessId, std::int64_t> accounts;
  };
  void settle(std::unordered_map<std::uint64_t, Entry>::iterator entry, ProcessId holder,
              std::int64_t delta);

  Callbacks callbacks_;
  void write_stored(wire::Stored::Builder into, const detail::StoredPtr& stored);
  detail::StoredPtr read_stored(wire::Stored::Reader from);

  std::unordered_map<std::uint64_t, Entry> entries_;
  void note_own(const detail::StoredPtr& stored);
  /// Values of ours that have left, or that others wrote: one that comes back is the same, and is
  /// not freed twice.
  std::unordered_map<store::ObjectId, std::weak_ptr<detail::StoredValue>> own_;
  std::size_t clean_at_ = 64;
};

}  // namespace troupe::runtime
