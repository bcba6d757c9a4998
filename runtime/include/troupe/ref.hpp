#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/codec.hpp>
#include <troupe/detail/core.hpp>
#include <troupe/detail/sendable.hpp>
#include <troupe/detail/signature.hpp>
#include <troupe/errors.hpp>

namespace troupe {

template <class T>
class Ref;
class AnyRef;

namespace detail {
/// The state behind a ref. Throws std::logic_error if it is empty.
template <class T>
const ObjectPtr& object_of(const Ref<T>& ref);
const ObjectPtr& object_of(const AnyRef& ref);
/// The ref that stands for `object`, which must hold a T.
template <class T>
Ref<T> ref_to(ObjectPtr object);

/// What a call that is written wrongly gives, so that its one error is the one that explains it.
struct Mistaken {
  template <class T>
  operator T() const;
  Mistaken get() const;
};

template <class T>
inline constexpr bool is_ref = false;
template <class T>
inline constexpr bool is_ref<Ref<T>> = true;
}  // namespace detail

/// A handle on a value of type T, which is here, in another process, or not computed yet. The
/// process that made the call (or put the value) owns the value. Refs are cheap to copy and travel
/// inside arguments and results. Any thread of the process may use one.
///
/// A call runs whether or not somebody keeps its ref. What it throws is told by get() alone: nobody
/// hears of the failure of a call whose ref was dropped.
///
/// If there is no value, get() throws why: TaskError (user code threw), ActorDied, ProcessDied,
/// Cancelled, ObjectLost (its owner is gone), Disconnected, ... A task that waits in get() lends
/// its CPU to others meanwhile.
template <class T>
class Ref {
 public:
  using value_type = T;

  /// Refers to nothing; only assignment makes use of it.
  Ref() = default;

  /// Waits for the value and decodes a copy of it: keep the result if you need it twice. Throws
  /// std::logic_error if a method of an actor would wait for a call of that same actor, which
  /// begins only once the method has returned.
  T get() const { return take(std::nullopt); }
  /// Like get(), but throws TimedOut if the value is not there in time. The call continues.
  T get(std::chrono::milliseconds timeout) const { return take(timeout); }

  /// The value if the call has returned one; nothing if it has not ended yet or has failed, which
  /// failure() tells apart. Brings a large value here, as get() does.
  std::optional<T> try_get() const requires(!std::is_void_v<T>) {
    if (!ready() || failure()) return std::nullopt;
    return get();
  }
  /// Why there will never be a value; nothing if there is one, or if the call has not ended.
  std::optional<Failure> failure() const {
    if (!ready()) return std::nullopt;
    return detail::failure_of(*detail::object_of(*this));
  }

  /// True once the call has ended, with a value or with a failure. A value of 100 KiB or more may
  /// then still be on another node, or on the disk: get() brings it.
  bool ready() const { return detail::is_ready(*detail::object_of(*this)); }
  /// Waits until ready(), at most for `timeout`. -> ready()
  bool wait_for(std::chrono::milliseconds timeout) const {
    const auto& object = detail::object_of(*this);
    return detail::wait_objects({&object, 1}, 1, timeout) == 1;
  }

  /// Drops the call if it has not begun: the ref then fails with Cancelled. A value that is there
  /// stays.
  void cancel() const { detail::cancel_object(detail::object_of(*this)); }

  /// False if it refers to nothing.
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Ref&, const Ref&) = default;

  void save(detail::OutArchive& archive) const { archive.reference(detail::object_of(*this)); }
  void load(detail::InArchive& archive) { object_ = archive.reference(); }

 private:
  friend const detail::ObjectPtr& detail::object_of<T>(const Ref&);
  friend Ref detail::ref_to<T>(detail::ObjectPtr);

  T take(std::optional<std::chrono::milliseconds> timeout) const {
    const auto keep = detail::object_of(*this);
    const auto& payload = detail::get_object(keep, timeout);
    if constexpr (!std::is_void_v<T>) return detail::decode<T>(payload);
  }

  detail::ObjectPtr object_;
};

namespace detail {
template <class T>
const ObjectPtr& object_of(const Ref<T>& ref) {
  if (!ref.object_) throw std::logic_error("troupe: an empty Ref stands for no value");
  return ref.object_;
}
template <class T>
Ref<T> ref_to(ObjectPtr object) {
  Ref<T> ref;
  ref.object_ = std::move(object);
  return ref;
}
}  // namespace detail

/// Stores a value once, to be handed to many calls.
template <class T>
Ref<detail::Returned<T>> put(const T& value) {
  using Value = detail::Returned<T>;
  constexpr bool send = detail::require_sendable<Value>();
  if constexpr (!send) {
    return {};
  } else if constexpr (std::is_same_v<Value, T>) {
    return detail::ref_to<Value>(detail::put_object(detail::encode<Value>(value)));
  } else {
    return detail::ref_to<Value>(detail::put_object(detail::encode<Value>(Value(value))));
  }
}
/// A literal is stored as a std::string.
inline Ref<std::string> put(const char* text) { return put(std::string(text)); }

/// A ref of any type, for waiting on refs of several types together. It has no get(): use the ref
/// that it was made of, which it equals. Any thread of the process may use one.
class AnyRef {
 public:
  template <class T>
  AnyRef(const Ref<T>& ref) : object_(detail::object_of(ref)) {}  // NOLINT: a ref is one

  /// These do the same as those of the ref that it was made of.
  bool ready() const { return detail::is_ready(*object_); }
  std::optional<Failure> failure() const {
    return ready() ? detail::failure_of(*object_) : std::nullopt;
  }
  bool wait_for(std::chrono::milliseconds timeout) const {
    return detail::wait_objects({&object_, 1}, 1, timeout) == 1;
  }
  void cancel() const { detail::cancel_object(object_); }
  friend bool operator==(const AnyRef&, const AnyRef&) = default;

 private:
  friend const detail::ObjectPtr& detail::object_of(const AnyRef& ref);
  detail::ObjectPtr object_;
};

namespace detail {
inline const ObjectPtr& object_of(const AnyRef& ref) { return ref.object_; }

template <class R>
std::vector<ObjectPtr> objects_of(const std::vector<R>& refs) {
  std::vector<ObjectPtr> objects;
  objects.reserve(refs.size());
  for (const auto& ref : refs) objects.push_back(object_of(ref));
  return objects;
}
}  // namespace detail

/// What wait() found: each ref is in one of the two, in the order given.
template <class R>
struct Waited {
  std::vector<R> ready;
  std::vector<R> unready;
};

namespace detail {
template <class R>
Waited<R> wait_for_some(const std::vector<R>& refs, std::size_t count,
                        std::optional<std::chrono::milliseconds> timeout) {
  wait_objects(objects_of(refs), count, timeout);
  Waited<R> found;
  for (const auto& ref : refs) {
    (found.ready.size() < count && ref.ready() ? found.ready : found.unready).push_back(ref);
  }
  return found;
}

/// Throws as soon as one of the refs has failed, also while others are not ready.
template <class T>
void require_all(const std::vector<Ref<T>>& refs,
                 std::optional<std::chrono::milliseconds> timeout) {
  const auto objects = objects_of(refs);
  if (const auto failed = wait_all(objects, timeout)) get_object(objects[*failed], std::nullopt);
}

template <class T>
std::vector<T> get_all(const std::vector<Ref<T>>& refs,
                       std::optional<std::chrono::milliseconds> timeout) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  require_all(refs, timeout);
  std::vector<T> values;
  values.reserve(refs.size());
  for (const auto& ref : refs) {
    if (!timeout) {
      values.push_back(ref.get());
      continue;
    }
    // A large value may still have to be brought here.
    const auto gone = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    values.push_back(ref.get(std::max(*timeout - gone, std::chrono::milliseconds(0))));
  }
  return values;
}
}  // namespace detail

/// Waits until `count` of the refs are ready (with a value or a failure) or the timeout is over.
/// Never throws the failure of a call. `ready` has at most `count` refs, the first ones in the
/// order given. Other refs that are ready too are in `unready`, where the next wait finds them at
/// once.
template <class T>
Waited<Ref<T>> wait(const std::vector<Ref<T>>& refs, std::size_t count = 1,
                    std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return detail::wait_for_some(refs, count, timeout);
}
/// The same for refs of several types: wait({first, second}).
inline Waited<AnyRef> wait(const std::vector<AnyRef>& refs, std::size_t count = 1,
                           std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return detail::wait_for_some(refs, count, timeout);
}

/// Returns all the values, in the order given. If a call fails, throws its failure at once; if
/// several have failed, that of the first in the order given. GangBroken, with which a rank ends
/// because another rank failed, is replaced by that rank's failure, for which get() waits up to
/// two seconds. The other calls continue.
template <class T>
requires(!std::is_void_v<T>) std::vector<T> get(const std::vector<Ref<T>>& refs) {
  return detail::get_all(refs, std::nullopt);
}
/// The same, but throws TimedOut, which says how many values are missing, if they are not all there
/// in time. The calls continue.
template <class T>
requires(!std::is_void_v<T>) std::vector<T> get(const std::vector<Ref<T>>& refs,
                                                std::chrono::milliseconds timeout) {
  return detail::get_all(refs, timeout);
}
/// The same for refs in braces: get({first, second}).
template <class T>
requires(!std::is_void_v<T>) std::vector<T> get(
    std::initializer_list<Ref<T>> refs,
    std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return detail::get_all(std::vector<Ref<T>>(refs), timeout);
}
/// Waits for all calls. Throws as soon as any of them fails, as get() of values does.
inline void get(const std::vector<Ref<void>>& refs) { detail::require_all(refs, std::nullopt); }
inline void get(const std::vector<Ref<void>>& refs, std::chrono::milliseconds timeout) {
  detail::require_all(refs, timeout);
}

}  // namespace troupe
