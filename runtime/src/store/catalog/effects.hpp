#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "store/types.hpp"

// What the catalog wants done, in the order given.

namespace troupe::store {

/// Answers to a process.
struct Created {
  ProcessId to;
  RequestId request;
  ObjectId object;
  Extent extent;
  bool warm;  ///< the process has all pages of it mapped already
};
struct Got {
  ProcessId to;
  RequestId request;
  ObjectId object;
  Extent extent;
  std::uint64_t bytes;
};
struct Declined {
  ProcessId to;
  RequestId request;
  Refusal refusal;
};
/// The pages of an object that it freed are its own to use again.
struct Kept {
  ProcessId to;
  Extent extent;
};
/// It shall drop the views that it holds and nobody uses, and those in use with their last user:
/// all of them, and give back what it keeps, or only that of `view`. Where `round` is not 0 it has
/// to answer with that number, also where it has nothing.
struct Recall {
  ProcessId from;
  std::uint64_t round;
  std::optional<ObjectId> view;
};
/// A process has ended that wrote these for `to`, attached or not, and may have ended before it
/// said so: who was never told frees them. At least one.
struct Orphans {
  ProcessId to;
  std::vector<ObjectId> objects;
};
/// Work on memory, to be done one after the other. Commit is answered by committed().
struct Punch {
  JobId job;
  Extent extent;
};
struct Commit {
  JobId job;
  ObjectId object;
  Extent extent;
};
/// Work on the disk, likewise; answered by written() and restored().
struct WriteOut {
  JobId job;
  ObjectId object;
  Extent extent;
  std::uint64_t bytes;
};
struct ReadBack {
  JobId job;
  ObjectId object;
  Extent extent;
  std::uint64_t bytes;
};
struct Erase {
  ObjectId object;
};
/// Was freed, and this node itself reads or writes it, or has: it shall let go, and tell others.
struct Gone {
  JobId job;
  ObjectId object;
  bool copy;
};
/// Nobody of the job is left.
struct CloseArena {
  JobId job;
};
using Effect = std::variant<Created, Got, Declined, Kept, Recall, Orphans, Punch, Commit, WriteOut,
                            ReadBack, Erase, Gone, CloseArena>;
using Effects = std::vector<Effect>;

}  // namespace troupe::store
