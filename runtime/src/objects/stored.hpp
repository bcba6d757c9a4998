#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <variant>

#include <troupe/detail/core.hpp>

#include "ids/session.hpp"
#include "objects/doorbell.hpp"
#include "objects/object.hpp"
#include "objects/remote_stores.hpp"
#include "store/client/client.hpp"

namespace troupe::detail {

/// A value in the object store of a node, as one process knows it. Any thread.
///
///   [elsewhere] --fetch()--> [fetching] --> [here] --its last block goes--> [elsewhere]
///                                   |\---> [elsewhere]   nobody waits for it any more
///                                   \--> [failed] --fetch() has told why--> [elsewhere]
///
/// Here means pinned in the store of this node, for as long as a block of it lives. The owner's own
/// frees the value when it ends; others do not, and are kept from outliving it by the ref that they
/// came with, or by the call.
class StoredValue : public std::enable_shared_from_this<StoredValue> {
 public:
  /// `at` of the place is the store that it was written to. `own`: this process frees it.
  StoredValue(store::Wanted place, bool own)
      : place_(std::move(place)), own_(own), session_(runtime::current_session()) {}
  /// One that this process has written, and has in view.
  StoredValue(store::Wanted place, bool own, const store::ViewPtr& view)
      : place_(std::move(place)),
        own_(own),
        session_(runtime::current_session()),
        bytes_(view->bytes()),
        view_(view) {}
  ~StoredValue();
  StoredValue(const StoredValue&) = delete;
  StoredValue& operator=(const StoredValue&) = delete;

  const store::Wanted& place() const { return place_; }
  bool is_own() const { return own_; }
  /// Of a session that has ended: only what is here already can be looked at.
  bool is_stale() const { return session_ != runtime::current_session(); }

  /// Blocks until it is here. Throws what became of it instead, or TimedOut.
  void fetch(runtime::Deadline deadline);
  /// As fetch(nullopt), but not for longer than this; -> false: it is still coming.
  bool fetch_within(std::chrono::milliseconds time);
  /// What was brought and not opened is no longer held: it stays only where memory is not short.
  void give_back();
  /// As fetch, with the bytes.
  Block open();

 private:
  ObjectPtr begin();
  bool wait_for(runtime::Deadline deadline);
  void arrived(std::variant<runtime::FetchedView, store::Refusal> seen);

  const store::Wanted place_;
  const bool own_;
  const std::uint64_t session_;
  std::mutex mutex_;                   // guards what follows
  int waiting_ = 0;                    // in fetch()
  ObjectPtr coming_;                   // completed when it is here, or will not be
  std::shared_ptr<const void> first_;  // until somebody opens it
  std::span<const std::byte> bytes_;
  std::weak_ptr<const void> view_;  // of them
};

/// Brings all of them, each stored. Where memory is so short that one does not come while others
/// are held, those are given back and it is waited for alone: two calls that each hold what the
/// other one waits for would wait for ever. For how long is drawn anew each time, so that they do
/// not give back in step. Throws as fetch.
void fetch_together(std::span<StoredValue* const> values);

}  // namespace troupe::detail
