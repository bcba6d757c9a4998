#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include <troupe/errors.hpp>

#include "ids/ids.hpp"
#include "transport/connection.hpp"

namespace troupe::runtime {

/// What this process asks of the head, and what the head tells it: over its own connection (a
/// driver) or relayed by its node (a worker process). Belongs to the loop.
class HeadLink {
 public:
  using Fill = std::function<void(wire::HeadRequest::Builder)>;
  using Granted = std::function<void(wire::HeadNotice::Reader)>;
  using Refused = std::function<void(const Failure&)>;

  /// Where asks go from now on.
  void connect(transport::ConnectionPtr connection) { connection_ = std::move(connection); }
  /// Every ask that is not answered, and every later one, is refused with this. The first reason
  /// stands: what follows from it may be noticed later.
  void disconnect(const Failure& why);
  /// What still comes from the head then is about the end of its cluster, and says less than why it
  /// ended.
  bool is_gone() const { return gone_.has_value(); }

  /// -> id. Exactly one of the two is called, once, later; not at all after forget(id).
  HeadRequestId request(const Fill& fill, Granted granted, Refused refused);
  /// An ask without an answer.
  void notify(const Fill& fill);
  /// The answer is not wanted any more; the head is told.
  void withdraw(HeadRequestId id);

  /// Hands an answer to who asked. False where it answers nothing: it was unasked.
  bool answer(wire::HeadNotice::Reader tell);

 private:
  struct Pending {
    Granted granted;
    Refused refused;
  };
  void send(HeadRequestId id, const Fill& fill);

  transport::ConnectionPtr connection_;
  std::optional<Failure> gone_;
  HeadRequestId last_id_;
  std::unordered_map<HeadRequestId, Pending> pending_;
};

}  // namespace troupe::runtime
