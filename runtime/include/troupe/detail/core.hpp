#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/errors.hpp>
#include <troupe/options.hpp>

/// What the templates of the public headers ask of the process they run in. Implemented in
/// runtime/src/session. Every function may be called from any thread of a process after
/// troupe::init, unless it says otherwise.
namespace troupe::detail {

class Object;  ///< the state behind a ref; private to the runtime
using ObjectPtr = std::shared_ptr<Object>;

/// An encoded value that lies in the object store of a node; private to the runtime.
class StoredValue;
using StoredPtr = std::shared_ptr<StoredValue>;

/// An encoded value: bytes, and the refs that stand in them by index.
struct Payload {
  std::string bytes;
  std::vector<ObjectPtr> refs;
  StoredPtr stored = nullptr;  ///< where set, the bytes lie there instead
};

/// An argument of a call: a value, or a ref whose value is to be put in its place before the call
/// is sent.
using Argument = std::variant<Payload, ObjectPtr>;

/// Names a function of the program in every process that runs the same program.
struct FunctionKey {
  std::uint64_t name = 0;  ///< hash of the mangled name of its tag type
  /// Of its invoker from the start of the image, where two names are the same.
  std::uint64_t offset = 0;
  std::string_view label;  ///< for people: "Counter::add"; static storage
};

struct CallSpec {
  FunctionKey function;
  std::vector<Argument> arguments;
};

using ActorId = std::uint64_t;

/// One share in an actor that this process made or was handed; the last one of an unshared, unnamed
/// actor ends it.
class ActorState;
using ActorPtr = std::shared_ptr<ActorState>;

ObjectPtr submit_task(CallSpec call, const RequestOptions& options);
ActorPtr spawn_actor(CallSpec constructor, std::string_view type, const RequestOptions& options);
ObjectPtr call_actor(const ActorPtr& actor, CallSpec call);
/// Resolves to nothing once constructed; fails with the actor's death.
ObjectPtr actor_ready(const ActorPtr& actor);
/// Throws Refused if there is no such actor within the timeout, or its type is not `type`.
ActorPtr find_actor(std::string_view name, std::string_view type,
                    std::chrono::milliseconds timeout);
ActorPtr adopt_actor(ActorId id, std::string_view type);  ///< a handle that arrived in a value
ActorId share_actor(
    /// A handle that leaves in a value: the actor now lives until its job ends.
    const ActorPtr& actor);
void kill_actor(const ActorPtr& actor);

struct GangRequest {
  std::uint32_t size = 0;
  Strategy strategy = Strategy::Pack;
  bool awaited = false;  ///< its caller does nothing else meanwhile
};
/// A gang that was asked for. It ends, or its request is taken back, with the last share in its
/// ranks once it is no longer pending.
struct GangPlacement {
  /// Nothing, once it is placed; fails with Impossible, TimedOut, Cancelled or Disconnected.
  ObjectPtr placed;
  std::vector<ActorPtr> ranks = {};
};
/// Asks for all ranks or none; returns at once. Every rank's constructor call is `constructor`,
/// with the same arguments. The request keeps its place in the head's queue until it is placed,
/// refused or withdrawn, or `timeout` is over.
GangPlacement place_gang(CallSpec constructor, std::string_view type, const GangRequest& gang,
                         const RequestOptions& each,
                         std::optional<std::chrono::milliseconds> timeout);
/// Takes the request back; a gang that has been placed already ends. Returns at once.
void withdraw_gang(const GangPlacement& gang);
/// Sets `key` in the rendezvous of the gang that `rank` belongs to, so that its ranks see it while
/// their actors are in a call. Returns at once, without an error: where the gang is gone, or another
/// process made it, nothing is set. Any thread.
void tell_gang(const ActorPtr& rank, std::string key, std::string value);

// ---- large values -------------------------------------------------------------------------------

/// Values of this size and above lie in the object store, where the process has one.
inline constexpr std::size_t kStoredBytes = 100 * 1024;

/// Encoded bytes that are here, and what keeps them where they are: nothing where they are the
/// payload's own.
struct Block {
  std::string_view bytes;
  std::shared_ptr<const void> keep;
};
/// Brings a stored value to this process, which pins it as long as the block lives. Blocks. Throws
/// ObjectLost, StoreFull, TimedOut, Disconnected.
Block open_stored(const Payload& payload);
inline Block block_of(const Payload& payload) {
  return payload.stored ? open_stored(payload) : Block{payload.bytes, nullptr};
}

/// Who frees a value: this process, or the one whose call is running here and that will have it as
/// a result.
enum class Owner : std::uint8_t { Self, Caller };

/// Memory of the object store, shared with other processes once it is sealed. Not sealed, it is
/// given back.
class Room {
 public:
  virtual ~Room() = default;
  virtual std::span<char> bytes() = 0;  ///< not cleared; from the start of a page
  virtual StoredPtr seal() = 0;         ///< once; nothing is written after
};
/// nullptr: this process has no object store. Blocks. Throws StoreFull, TooLarge, Disconnected.
std::unique_ptr<Room> store_room(std::uint64_t bytes, Owner owner);
/// False: store_room would return nullptr.
bool has_store();

ObjectPtr put_object(Payload value);
bool is_ready(const Object& object);
/// Of one that is ready: what it failed with.
std::optional<Failure> failure_of(const Object& object);
/// Blocks. Throws what the call failed with, or TimedOut. The payload lives as long as the object.
const Payload& get_object(const ObjectPtr& object,
                          std::optional<std::chrono::milliseconds> timeout);
/// What becomes of the CPU of a task, or of an actor's method, while it waits. It is given back by
/// default; then it goes on once one is free again, or half a second later, which is too long for
/// whoever waits for one short event after another.
enum class CpuMeanwhile : std::uint8_t { GivenBack, Kept };
/// What a thread has to do with the CPU that its process holds for the calls of others, and so what
/// its waits lend.
enum class CpuUse : std::uint8_t {
  /// A thread of the program's own, as each is at first. Its wait lends the CPU only while its
  /// process holds one for a call and computes next to nothing: then the call waits for the thread.
  OfProgram,
  OfCalls,  ///< The thread runs the calls of others, or does the work of one. Its wait lends the CPU.
  None,     ///< Its wait lends nothing.
};
CpuUse cpu_use();  ///< of this thread
/// For as long as it lives, the thread that makes it has that to do with the CPU of its process. A
/// thread that does the work of another one, which does nothing else meanwhile, has the other one's.
class [[nodiscard]] CpuUser {
 public:
  explicit CpuUser(CpuUse use);
  ~CpuUser();
  CpuUser(const CpuUser&) = delete;
  CpuUser& operator=(const CpuUser&) = delete;

 private:
  const CpuUse before_;
};
/// Blocks until `count` of them are ready or the time is over; -> how many are ready.
std::size_t wait_objects(std::span<const ObjectPtr> objects, std::size_t count,
                         std::optional<std::chrono::milliseconds> timeout,
                         CpuMeanwhile cpu = CpuMeanwhile::GivenBack);
/// Blocks until all of them have values, one has failed, or the time is over, which throws TimedOut.
/// -> which one has failed; nothing: all have values.
std::optional<std::size_t> wait_all(
    std::span<const ObjectPtr> objects,
    std::optional<std::chrono::milliseconds> timeout = std::nullopt);
void cancel_object(const ObjectPtr& object);
/// Never has a value; fails once the cluster has ended for this process, with how, before anything
/// fails for that reason. nullptr where this process is in no cluster.
ObjectPtr cluster_end();

// ---- what the process asks of the program -------------------------------------------------------

/// Decodes the arguments, calls, encodes the result. `self` is the actor (nullptr for a task). User
/// exceptions pass through.
using Invoke = Payload (*)(void* self, std::span<Payload> arguments);
/// Decodes the arguments and makes the actor.
using Construct = std::shared_ptr<void> (*)(std::span<Payload> arguments);

struct Function {
  FunctionKey key;
  Invoke invoke = nullptr;        ///< of a task or a method
  Construct construct = nullptr;  ///< of an actor
  const char* mangled_tag = "";   ///< static storage
};
/// Called while static objects are constructed, once for each function that the program can be
/// asked for.
FunctionKey register_function(const char* mangled_tag, std::string_view label, Invoke invoke,
                              Construct construct);
/// nullptr if the program has no such function.
const Function* find_function(std::uint64_t name, std::uint64_t offset);
/// Why there is none, of the function that people know as `label`: the program has it with another
/// signature, and with which, or not at all.
std::string why_no_function(std::string_view label);

}  // namespace troupe::detail
