#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/memory/arena.hpp"
#include "store/types.hpp"

namespace troupe::store {

/// An object's memory, pinned by the node itself: to be sent, or to be written with what comes.
struct Held {
  std::shared_ptr<Arena> arena;
  Extent extent = {};
  std::uint64_t bytes = 0;
};

/// An object that was written on another node, and is to be brought here.
struct Copy {
  ObjectId object = {};
  JobId job{};
  NodeAddress at = {};  ///< where it was written
  Held into = {};
  /// This node has written to that memory before: no page fault is left to take.
  bool warm = false;
};

/// What the store of a node asks of those of other nodes. Belongs to the service's loop, on which
/// all of it is called, and not by a call of Service itself but for free(), watch() and orphaned(),
/// which do not call back.
class RemoteStoreClient {
 public:
  virtual ~RemoteStoreClient() = default;
  /// Ends with Service::copied, always.
  virtual void fetch(Copy copy) = 0;
  /// An object was freed that this node has sent, sends or fetches: it lets go of it (release,
  /// copied), and where it is no copy, tells who has one.
  virtual void freed(JobId job, ObjectId object, bool is_copy) = 0;
  /// A process of this node has freed what was written elsewhere.
  virtual void free(JobId job, ObjectId object, const NodeAddress& at) = 0;
  /// Objects of this process are here, and it is not attached: Service::owner_ended has to be
  /// called when it has ended.
  virtual void watch(ProcessId owner) = 0;
  /// A process of this node that has ended wrote these for this owner, which is not attached: it
  /// shall free what it was never told of. At least one.
  virtual void orphaned(ProcessId owner, const std::vector<ObjectId>& objects) = 0;
};

}  // namespace troupe::store
