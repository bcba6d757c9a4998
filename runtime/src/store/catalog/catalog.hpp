#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "store/catalog/effects.hpp"
#include "store/catalog/kept_pages.hpp"
#include "store/catalog/object_line.hpp"
#include "store/catalog/owners.hpp"
#include "store/catalog/pins.hpp"
#include "store/catalog/shortage.hpp"
#include "store/catalog/writer_numbers.hpp"
#include "store/memory/extents.hpp"
#include "store/types.hpp"

namespace troupe::store {

struct CatalogOptions {
  std::uint64_t cap_bytes = std::uint64_t{1} << 30;  ///< of memory, over all jobs
  /// That one process may keep of what it has freed.
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;
  /// An arena's address space, in caps; see Extents.
  std::uint64_t space_factor = 16;
  /// Requests that wait for memory or for an object.
  std::size_t most_waiting = 10'000;
  std::size_t most_objects = 1'000'000;
  /// Of one writer: frees that came before their objects; more are given up.
  std::size_t most_freed_early = 65'536;
};

/// What `troupe status` shows.
struct Statistics {
  std::uint64_t cap_bytes = 0;
  std::uint64_t limit_bytes = 0;   ///< below the cap where the machine gave no more
  std::uint64_t object_bytes = 0;  ///< in memory: whole pages of objects, being written or sealed
  std::uint64_t pinned_bytes = 0;  ///< of these
  std::uint64_t kept_bytes = 0;    ///< by processes, for their next objects
  std::uint64_t warm_bytes = 0;    ///< free, with pages
  std::uint64_t disk_bytes = 0;
  std::size_t objects = 0;
  std::size_t waiting = 0;
  std::uint64_t spilled = 0, restored = 0;  ///< objects, since the start
  bool operator==(const Statistics&) const = default;
};

/// As many objects, the largest, does a node tell `troupe list objects` of at most.
inline constexpr std::size_t kMostListed = 10'000;

/// One object of the store of a node, as `troupe list objects` shows it. A value.
struct ObjectView {
  /// As it travels: a number keeps its meaning.
  enum class State : std::uint8_t {
    Waiting,  ///< for memory
    Writing,  ///< its writer has not sealed it
    Memory,   ///< whole, and in memory
    Disk,     ///< whole, and in a file alone
    Freed,    ///< there only until nobody has it pinned
  };
  /// Of the pins of one object: the first ones, by process, are told.
  static constexpr std::size_t kMostPins = 16;

  ObjectId object = {};
  JobId job{};
  ProcessId owner{};  ///< frees it
  std::uint64_t bytes = 0;
  State state = State::Memory;
  bool is_copy = false;                   ///< of an object of another node
  std::vector<ProcessId> pinned_by = {};  ///< none: this node itself
};

/// What is where in the object store of one node: a pure state machine, with no memory, socket,
/// clock or file. Each event returns what is to be done about it. Lives in the node, on its loop.
///
///                  memory found                  seal              written out, and memory needed
///    [waiting] ----------------> [creating] ------------> [sealed] -------------------------> [spilled]
///        |                            |                     |  ^                                 |
///        | refused; its process       | freed; its process  |  '------- get: memory found, ------'
///        v has ended                  v has ended           |           read back                |
///      gone                         [freed] <---------------+------------------------------------'
///                                     |       freed by its owner; the owner or the job has ended
///                                     '--> gone, as soon as nobody has it pinned and no disk work is on it
///
/// * Pinned: a creating object by its writer; a sealed one once for each Got. Only sealed objects
///   without a pin leave memory, the least recently used first; one that was written out before
///   leaves at no cost.
/// * Memory is sought in the order: warm pages; fresh pages below the cap; warm pages exchanged for
///   fresh ones elsewhere; what processes keep or hold without use (Recall); objects to the disk.
///   Who asked first is served first.
/// * As long as somebody waits for memory, no process holds a view beyond its last user: each that
///   is given out then is recalled at once.
/// * A request that cannot be served waits until something changes or expired() says that it has
///   waited enough. One that could be served only by a disk that fails is declined at once.
/// * The node itself is one more process of each job: node_of(job). What it creates is a copy of an
///   object of another node. A copy never goes to the disk: it can be brought again, so it is given
///   up instead.
///
/// It is made of values, each with its own invariants: Owners (who frees what, who has ended), Pins
/// (who uses what), KeptPages (what processes keep), ObjectLine (who waits for memory; what may
/// leave it), Shortage (what was done to find memory), WriterNumbers (what may come), Extents
/// (which bytes are free). After every event, beside theirs:
///
/// 1. Every byte in arenas is an object's, kept, or warm; together they are at most the cap, and no
///    two extents overlap.
/// 2. An object that was freed is there only as long as somebody has it pinned, or work on it is
///    under way.
/// 3. An object that is being written is pinned by its writer.
/// 4. Each part knows of an object exactly what the object says of itself.
class Catalog {
 public:
  explicit Catalog(CatalogOptions options);

  /// The node itself, among the processes of the job.
  static constexpr ProcessId node_of(JobId job) { return ProcessId(kNode | job.value()); }
  static constexpr bool is_node(ProcessId process) { return (process.value() & kNode) != 0; }

  // ---- requests of a process
  /// The number is no process's, or a process of another job has it.
  std::optional<Refusal> why_not_attach(ProcessId process, JobId job) const;
  /// Only where nothing speaks against that. A process that is attached already keeps what it has.
  void attach(ProcessId process, JobId job);
  /// An object of that many bytes, to be written by `by` and freed by `owner` (any process, also on
  /// other nodes). The numbers of a process ascend: what is not known, below its last one, is gone.
  /// By the node: a copy.
  Effects create(ProcessId by, RequestId request, ObjectId object, ProcessId owner,
                 std::uint64_t bytes);
  /// As create, in pages that `by` keeps; needs no answer, and `by` writes already. Where its owner
  /// has ended the object goes as soon as it is written. A refusal: `by` contradicts what it was
  /// told: it does not keep those pages, or the id is taken.
  std::variant<Effects, Refusal> create_in_kept(ProcessId by, ObjectId object, ProcessId owner,
                                                std::uint64_t bytes, std::uint64_t offset);
  /// By the writer, once all bytes are there. `pin`: and pinned by it, as after a Got.
  Effects seal(ProcessId by, ObjectId object, bool pin);
  /// Answered when the object is sealed and in memory. One that is not known yet may come: its
  /// writer's message and this one take different ways, or, where `copied`, the create of a copy is
  /// the next event.
  Effects get(ProcessId by, RequestId request, ObjectId object, bool copied = false);
  /// One more pin of the node on a copy that it still writes.
  void pin_copy(ObjectId object);
  /// The node is done with a copy: it is sealed, or was not to be had.
  Effects copied(ObjectId object, const std::optional<Refusal>& failure);
  Effects unpin(ProcessId by, ObjectId object, std::uint32_t count);
  /// By the writer or the owner; none: by this node, for an owner elsewhere. `keep`: the process would
  /// use the pages again. It may come before the create, as get: the owner is another process than
  /// the writer.
  Effects free(ProcessId by, ObjectId object, bool keep);
  /// Of what it keeps. `round`: of the Recall that it answers, or 0.
  Effects returned(ProcessId by, std::uint64_t round, const std::vector<std::uint64_t>& offsets);

  // ---- time
  /// It has waited long enough; nothing if it was answered.
  Effects expired(ProcessId by, RequestId request);
  /// Processes that have not answered a Recall by now are not waited for.
  Effects recall_over();
  Effects memory_may_grow();  ///< after Commit has failed: try again up to the cap

  // ---- ends
  /// Its pins, its unsealed objects, and those that it owns.
  Effects process_ended(ProcessId process);
  Effects owner_ended(ProcessId owner);  ///< elsewhere: the objects that it owns
  Effects job_ended(JobId job);

  // ---- results of work
  Effects committed(ObjectId object, const std::optional<Refusal>& failure);
  Effects written(ObjectId object, const std::optional<Refusal>& failure);
  Effects restored(ObjectId object, const std::optional<Refusal>& failure);

  std::optional<JobId> job_of(ProcessId process) const;  ///< nullopt: it is not attached
  std::optional<JobId> job_of(ObjectId object) const;    ///< nullopt: it is not known, or was freed
  bool knows(ObjectId object) const { return objects_.contains(object); }
  bool is_coming(ObjectId object) const;  ///< a copy that is not there yet
  bool waits(ProcessId by, RequestId request) const { return requests_.contains({by, request}); }
  /// For memory, or for the disk: in a line, which moves or does not.
  bool waits_in_line(ProcessId by, RequestId request) const;
  /// Of that line: memory found, work on the disk done.
  std::uint64_t moves() const { return moves_; }
  bool disk_works() const { return disk_work_ > 0; }
  std::uint64_t space_bytes() const { return space_bytes_; }  ///< of each arena
  /// Cheap, however many objects there are.
  Statistics statistics() const;
  /// The first objects by size, the largest first; among equals, by id. O(objects log most).
  std::vector<ObjectView> largest(std::size_t most) const;
  /// Throws std::logic_error where what the class comment promises does not hold. For tests. O(n).
  void check() const;

 private:
  static constexpr std::uint64_t kNode = std::uint64_t{1} << 63;
  enum class State { Waiting, Creating, Sealed, Spilled };
  enum class Work { None, Commit, Write, Read };
  using RequestKey = std::pair<ProcessId, RequestId>;
  struct Object {
    JobId job{};
    ProcessId writer{};
    ProcessId owner{};
    std::uint64_t bytes = 0;
    State state = State::Waiting;
    Work work = Work::None;
    ObjectLine::Place in_waiting = {};  // for memory
    ObjectLine::Place in_lru = {};      // may leave memory
    bool impatient = false;             // its create has waited long enough
    bool on_disk = false;               // there is a file
    bool used_by_node = false;
    bool freed = false;
    bool free_when_sealed = false;  // its owner was ahead of its writer
    bool unwritable = false;        // its way to the disk failed in this shortage
    Extent extent = {};             // none: no bytes
    Writers writers = {};           // of the extent
    PinCounts pins = {};
    RequestId create_request{};
    std::vector<RequestKey> getters = {};
    bool is_copy() const { return is_node(writer); }
  };
  using Entry = std::pair<const ObjectId, Object>;
  struct Process {
    JobId job{};
    std::unordered_set<ObjectId> writing;  // waiting or creating
    WriterNumbers numbers;
  };
  struct Job {
    explicit Job(std::uint64_t space) : extents(space) {}
    Extents extents;
    std::unordered_set<ObjectId> objects;
    bool ended = false;
  };
  enum class Room { Found, UnderWay, Stuck };

  // catalog.cpp: objects and who holds them
  Entry* find(ObjectId object);
  Entry& end_work(ObjectId id, Work work);
  std::optional<Refusal> why_not_name(ProcessId by, ObjectId object) const;
  std::optional<Refusal> why_not_create(ProcessId by, ObjectId object, ProcessId owner,
                                        std::uint64_t bytes) const;
  bool note_create(ObjectId object);
  bool may_come(ObjectId object) const;
  Entry& add(ProcessId by, ObjectId object, ProcessId owner, std::uint64_t bytes);
  void pin(Entry& entry, ProcessId by);
  void unpin(Entry& entry, ProcessId by, std::uint32_t count);
  void give_view(Entry& entry, RequestKey request, Effects& out);
  void recall_view(const Entry& entry, ProcessId by, Effects& out);
  void answer_getters(Entry& entry, Effects& out);
  void decline_early(ObjectId object, const Refusal& refusal, Effects& out);
  void decline_getters(Entry& entry, const Refusal& refusal, Effects& out);

  // catalog_ends.cpp: what is over
  bool try_keep(Entry& entry, ProcessId by, Effects& out);
  void free(Entry& entry, const std::string& why, Effects& out);
  void remove_if_idle(Entry& entry, Effects& out);
  void close_if_empty(JobId job, Effects& out);
  void end_process(ProcessId process, Effects& out);
  void free_owned(ProcessId owner, Effects& out);
  void expire_create(Entry& entry, Effects& out);
  void expire_get(RequestKey request, ObjectId object, Effects& out);

  // catalog_check.cpp
  void check_object(ObjectId id, const Object& object) const;
  void check_sums() const;
  void check_memory() const;

  static ObjectView view_of(const Entry& entry);

  // catalog_room.cpp: memory for them
  void place_or_wait(Entry& entry, Effects& out);
  void serve(Effects& out);
  bool place(Entry& entry, Effects& out);
  std::optional<Extent> take_hole(Extents& extents, JobId job, std::uint64_t bytes, Effects& out);
  void release(JobId job, Extents& extents, std::uint64_t bytes, Effects& out);
  void granted(Entry& entry, bool warm, Effects& out);
  Room make_room(Entry& entry, Effects& out);
  bool recall(Effects& out);
  Room evict_one(Effects& out);
  void leave_memory(Entry& entry);
  void set_extent(Object& object, Extent extent);
  Extent take_extent(Object& object);
  void return_extent(Object& object);
  void refuse(Entry& entry, const Refusal& refusal, Effects& out);
  Refusal no_room(std::uint64_t bytes) const;
  void update_lru(Entry& entry);
  void end_shortage();
  std::uint64_t in_arenas() const;
  std::uint64_t warm_bytes() const;

  const CatalogOptions options_;
  const std::uint64_t space_bytes_;
  std::uint64_t limit_bytes_;  // the cap, or less after a Commit that failed
  std::optional<Refusal> limited_because_;
  std::unordered_map<ObjectId, Object> objects_;
  std::unordered_map<ProcessId, Process> processes_;
  std::map<JobId, Job> jobs_;
  std::map<RequestKey, ObjectId> requests_;  // not answered yet
  // Gets of objects that are not known yet.
  std::unordered_map<ObjectId, std::vector<RequestKey>> early_;
  Owners owners_;
  Pins pins_;
  KeptPages kept_;
  ObjectLine lru_;      // what may leave memory, by last use
  ObjectLine waiting_;  // for memory
  Shortage shortage_;

  std::uint64_t moves_ = 0;
  std::size_t disk_work_ = 0;  // WriteOut and ReadBack that are not answered
  std::uint64_t spilled_ = 0, restored_ = 0, disk_bytes_ = 0;
  std::uint64_t object_bytes_ = 0, pinned_bytes_ = 0;  // see Statistics
};

}  // namespace troupe::store
