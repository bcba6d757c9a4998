#pragma once

#include <cstddef>
#include <map>

#include <boost/container/flat_map.hpp>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/resources.hpp>

namespace troupe::scheduler {

struct Node;
struct Request;

/// What is kept on one node, and for whom. A value that lies with its node; Reservations alone
/// changes it.
class Claims {
 public:
  struct Claim {
    Request* request = nullptr;  ///< what is kept is kept for this one
    Resources resources;
  };

  bool empty() const { return claims_.empty(); }
  std::size_t size() const { return claims_.size(); }
  /// nullptr: nothing is kept for the request here.
  const Claim* of(RequestId request) const {
    const auto found = claims_.find(request);
    return found == claims_.end() ? nullptr : &found->second;
  }
  Resources total() const {
    Resources total;
    for (const auto& [request, claim] : claims_) total += claim.resources;
    return total;
  }
  /// Pairs of RequestId and Claim, in the order of the ids.
  auto begin() const { return claims_.begin(); }
  auto end() const { return claims_.end(); }

 private:
  friend class Reservations;
  boost::container::flat_map<RequestId, Claim> claims_;
};

/// The nodes that are kept for one request, or a pause until some may be kept again. A value that
/// lies with its request; Reservations alone changes it.
class Reservation {
 public:
  struct Part {
    Node* node = nullptr;
    std::size_t ranks = 0;  ///< so many times the request's need is kept there
  };

  bool is_held() const { return !parts_.empty(); }
  /// In the order of the ids of the nodes; empty in a pause.
  const std::map<NodeId, Part>& parts() const { return parts_; }
  TimePoint until() const { return until_; }  ///< of what is held, or of the pause

 private:
  friend class Reservations;
  std::map<NodeId, Part> parts_;
  TimePoint until_{};
  Duration term_{};  // of what is held, or is held next
};

}  // namespace troupe::scheduler
