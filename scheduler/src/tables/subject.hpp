#pragma once

#include <cstdint>

#include <troupe/scheduler/ids.hpp>

namespace troupe::scheduler {

/// The lease, actor or gang that a request is for, or that uses a process. Which of the three it is
/// stands beside it, as the kind of the request's shape or the role of the process: a value of one
/// register, as there are millions.
class SubjectId {
 public:
  constexpr SubjectId() = default;
  constexpr explicit SubjectId(LeaseId lease) : number_{lease.value()} {}
  constexpr explicit SubjectId(ActorId actor) : number_{actor.value()} {}
  constexpr explicit SubjectId(GangId gang) : number_{gang.value()} {}

  constexpr explicit operator bool() const { return number_ != 0; }
  constexpr LeaseId lease() const { return LeaseId{number_}; }
  constexpr ActorId actor() const { return ActorId{number_}; }
  constexpr GangId gang() const { return GangId{number_}; }

  friend constexpr bool operator==(SubjectId, SubjectId) = default;

 private:
  std::uint64_t number_ = 0;
};

}  // namespace troupe::scheduler
