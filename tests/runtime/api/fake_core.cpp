#include "fake_core.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include <troupe/detail/core.hpp>
#include <troupe/detail/failure.hpp>

#include "fake_gang.hpp"
#include "guard.hpp"

namespace troupe::detail {

class Object {
 public:
  bool ready = false;
  Payload value;
  std::optional<Failure> failure;
  bool cancelled = false;
};

class StoredValue {
 public:
  StoredValue(const char* memory, std::size_t size) : bytes(memory), count(size) { ++alive; }
  ~StoredValue() {
    --alive;
    operator delete[](const_cast<char*>(bytes), kPage);
  }
  static constexpr std::align_val_t kPage{4096};
  const char* const bytes;
  const std::size_t count;
  static inline std::atomic<int> alive = 0;
};

namespace {

class FakeRoom : public Room {
 public:
  explicit FakeRoom(std::size_t size) : memory_(new (StoredValue::kPage) char[size]), size_(size) {}
  ~FakeRoom() override { operator delete[](memory_, StoredValue::kPage); }
  std::span<char> bytes() override { return {memory_, size_}; }
  StoredPtr seal() override {
    return std::make_shared<StoredValue>(std::exchange(memory_, nullptr), size_);
  }

 private:
  char* memory_;
  std::size_t size_;
};

using Queue = std::deque<std::function<void()>>;

struct World {
  std::mutex mutex;  // guards all of it, and every object
  std::condition_variable changed;
  Queue queue;
  std::map<ActorId, std::weak_ptr<ActorState>> actors;
  std::map<std::string, ActorPtr, std::less<>> names;
  std::map<ActorId, ActorPtr> shared;
  ActorId last = 0;
};
World& world() {
  static World here;
  return here;
}

thread_local GangContext* current_gang = nullptr;

}  // namespace

class ActorState {
 public:
  ~ActorState() {
    if (!thread.joinable()) return;
    {
      const std::lock_guard lock(world().mutex);
      own.emplace_back();
    }
    world().changed.notify_all();
    thread.join();
  }
  /// Of a gang's rank: until it is handed an empty piece of work.
  void run() {
    current_gang = gang.get();
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(world().mutex);
        world().changed.wait(lock, [&] { return !own.empty(); });
        work = std::move(own.front());
        own.pop_front();
      }
      if (!work) break;
      work();
    }
    self.reset();
  }

  ActorId id = 0;
  std::string type;
  std::shared_ptr<void> self;
  ObjectPtr made = std::make_shared<Object>();
  bool dead = false;
  std::shared_ptr<GangContext> gang;  // of a rank, which has the two below
  std::shared_ptr<fake::GangTable> table;
  Queue own;
  std::thread thread;
};

namespace {

bool step() {
  std::function<void()> work;
  {
    const std::lock_guard lock(world().mutex);
    if (world().queue.empty()) return false;
    work = std::move(world().queue.front());
    world().queue.pop_front();
  }
  work();
  return true;
}

void add(Queue& queue, std::function<void()> work) {
  const std::lock_guard lock(world().mutex);
  queue.push_back(std::move(work));
  world().changed.notify_all();
}

bool ready(const Object& object) {
  const std::lock_guard lock(world().mutex);
  return object.ready;
}

/// Runs what there is to run, and waits for other threads where there is nothing, until `done` or
/// the time is over.
void run_until(const std::function<bool()>& done, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (step()) continue;
    std::unique_lock lock(world().mutex);
    if (std::chrono::steady_clock::now() >= deadline) return;
    world().changed.wait_for(lock, std::chrono::milliseconds(5));
  }
}

const Payload& value_of(const ObjectPtr& object) {
  run_until([&] { return ready(*object); }, troupe::test::kGuard);
  if (!ready(*object))
    raise({.kind = Failure::Kind::TimedOut, .message = "nothing makes this ref ready"});
  if (object->failure) raise(*object->failure);
  return object->value;
}

std::vector<Payload> resolve(const CallSpec& call) {
  std::vector<Payload> payloads;
  for (const auto& argument : call.arguments) {
    const auto* object = std::get_if<ObjectPtr>(&argument);
    payloads.push_back(object != nullptr ? value_of(*object) : std::get<Payload>(argument));
  }
  return payloads;
}

const Function& function_of(const CallSpec& call) {
  const auto* function = find_function(call.function.name, call.function.offset);
  if (function == nullptr) raise({.kind = Failure::Kind::Program, .message = "no such function"});
  return *function;
}

Failure death() {
  return {.kind = Failure::Kind::ActorDied, .message = "the actor was killed", .signal = 9};
}

/// `actor`: whose call this is; if it has been killed by then, that is the outcome.
void settle(const ObjectPtr& object, std::string_view label, const std::function<Payload()>& work,
            const ActorState* actor = nullptr) {
  Payload value;
  std::optional<Failure> failure;
  try {
    if (object->cancelled) raise({.kind = Failure::Kind::Cancelled, .message = "cancelled"});
    value = work();
  } catch (...) {
    failure = current_failure(std::string(label));
  }
  const std::lock_guard lock(world().mutex);
  object->value = std::move(value);
  object->failure = actor != nullptr && actor->dead ? death() : std::move(failure);
  object->ready = true;
  world().changed.notify_all();
}

ActorPtr make_actor(CallSpec constructor, std::string_view type,
                    std::shared_ptr<fake::GangTable> table, int rank, int size) {
  auto actor = std::make_shared<ActorState>();
  actor->id = ++world().last;
  actor->type = type;
  world().actors[actor->id] = actor;
  auto* state = actor.get();
  auto construct = [state, constructor = std::move(constructor)] {
    settle(state->made, constructor.function.label, [&] {
      auto arguments = resolve(constructor);
      state->self = function_of(constructor).construct(arguments);
      return Payload{};
    });
  };
  if (table) {
    actor->gang = std::make_shared<fake::GangOfThreads>(table, rank, size);
    actor->table = std::move(table);
    add(actor->own, std::move(construct));
    actor->thread = std::thread([state] { state->run(); });
  } else {
    add(world().queue, [actor, construct = std::move(construct)] { construct(); });
  }
  return actor;
}

void call_now(const ObjectPtr& object, ActorState& actor, const CallSpec& call) {
  auto work = [&] {
    auto arguments = resolve(call);
    value_of(actor.made);
    return function_of(call).invoke(actor.self.get(), arguments);
  };
  settle(object, call.function.label, work, &actor);
}

}  // namespace

bool has_store() { return true; }
std::unique_ptr<Room> store_room(std::uint64_t bytes, Owner) {
  return std::make_unique<FakeRoom>(bytes);
}
Block open_stored(const Payload& payload) {
  return {{payload.stored->bytes, payload.stored->count}, payload.stored};
}

ObjectPtr submit_task(CallSpec call, const RequestOptions&) {
  auto object = std::make_shared<Object>();
  add(world().queue, [object, call = std::move(call)] {
    settle(object, call.function.label, [&] {
      auto arguments = resolve(call);
      return function_of(call).invoke(nullptr, arguments);
    });
  });
  return object;
}

ActorPtr spawn_actor(CallSpec constructor, std::string_view type, const RequestOptions& options) {
  auto actor = make_actor(std::move(constructor), type, nullptr, 0, 0);
  if (!options.name.empty()) world().names[options.name] = actor;
  return actor;
}

ObjectPtr call_actor(const ActorPtr& actor, CallSpec call) {
  auto object = std::make_shared<Object>();
  if (actor->gang) {
    add(actor->own,
        [object, state = actor.get(), call = std::move(call)] { call_now(object, *state, call); });
  } else {
    add(world().queue, [object, actor, call = std::move(call)] { call_now(object, *actor, call); });
  }
  return object;
}

ObjectPtr actor_ready(const ActorPtr& actor) { return actor->made; }

ActorPtr find_actor(std::string_view name, std::string_view type, std::chrono::milliseconds) {
  const auto found = world().names.find(name);
  if (found == world().names.end())
    raise({.kind = Failure::Kind::Refused, .message = "no actor has this name"});
  if (found->second->type != type)
    raise({.kind = Failure::Kind::Refused, .message = "it is a " + found->second->type});
  return found->second;
}

ActorPtr adopt_actor(ActorId id, std::string_view) { return world().actors.at(id).lock(); }
ActorId share_actor(const ActorPtr& actor) {
  world().shared[actor->id] = actor;
  return actor->id;
}
void kill_actor(const ActorPtr& actor) {
  {
    const std::lock_guard lock(world().mutex);
    actor->dead = true;
  }
  if (actor->table) actor->table->break_up();
}

ObjectPtr put_object(Payload value) {
  auto object = std::make_shared<Object>();
  object->value = std::move(value);
  object->ready = true;
  return object;
}
GangPlacement place_gang(CallSpec constructor, std::string_view type, const GangRequest& gang,
                         const RequestOptions&, std::optional<std::chrono::milliseconds>) {
  auto table = std::make_shared<fake::GangTable>();
  GangPlacement placement{.placed = put_object({})};
  const auto size = static_cast<int>(gang.size);
  for (int rank = 0; rank < size; ++rank)
    placement.ranks.push_back(make_actor(constructor, type, table, rank, size));
  return placement;
}
void withdraw_gang(const GangPlacement&) {}

bool is_ready(const Object& object) { return ready(object); }
std::optional<Failure> failure_of(const Object& object) {
  const std::lock_guard lock(world().mutex);
  return object.failure;
}
const Payload& get_object(const ObjectPtr& object, std::optional<std::chrono::milliseconds>) {
  return value_of(object);
}

std::size_t wait_objects(std::span<const ObjectPtr> objects, std::size_t count,
                         std::optional<std::chrono::milliseconds> timeout, CpuMeanwhile) {
  auto how_many = [&] {
    return static_cast<std::size_t>(
        std::count_if(objects.begin(), objects.end(), [](auto& o) { return ready(*o); }));
  };
  const auto most = timeout.value_or(troupe::test::kGuard);
  if (most.count() > 0) run_until([&] { return how_many() >= count; }, most);
  return how_many();
}
std::optional<std::size_t> wait_all(std::span<const ObjectPtr> objects,
                                    std::optional<std::chrono::milliseconds> timeout) {
  wait_objects(objects, objects.size(), timeout);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (failure_of(*objects[i])) return i;
  }
  return std::nullopt;
}
void cancel_object(const ObjectPtr& object) { object->cancelled = true; }
ObjectPtr cluster_end() { return nullptr; }

}  // namespace troupe::detail

namespace troupe {
ThisGang this_gang() { return ThisGang(detail::current_gang); }
}  // namespace troupe

namespace fake {
int stored_values() { return troupe::detail::StoredValue::alive; }

void run_all() {
  while (troupe::detail::step()) {
  }
}
}  // namespace fake
