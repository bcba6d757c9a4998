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

template <class T>
inline constexpr bool is_ref = false;
template <class T>
inline constexpr bool is_ref<Ref<T>> = true;
}  // namespace detail

/// A value of type T that is here, elsewhere, or not there yet. It is owned by the process that
/// made the call (or put the value); refs to it are cheap to copy and travel inside arguments and
/// results. Any thread of the process may use one.
///
/// get() throws what became of the call instead of a value: TaskError (user code threw), ActorDied,
/// ProcessDied, Cancelled, ObjectLost (its owner is gone), Disconnected, ... A task that waits in
/// get() gives its CPU back meanwhile.
template <class T>
class Ref {
 public:
  using value_type = T;

  /// Refers to nothing; only assignment makes use of it.
  Ref() = default;

  /// Waits for the value and decodes a copy of it: keep the result where it is needed twice. Throws
  /// std::logic_error where a method of an actor would wait for a call of that very actor, which
  /// begins only once the method has returned.
  T get() const { return take(std::nullopt); }
  /// Likewise; throws TimedOut if it is not there in time. The call goes on.
  T get(std::chrono::milliseconds timeout) const { return take(timeout); }

  /// The value if the call has given one; nothing if it has not yet, or has failed, which failure()
  /// tells apart. Brings a large value here, as get() does.
  std::optional<T> try_get() const requires(!std::is_void_v<T>) {
    if (!ready() || failure()) return std::nullopt;
    return get();
  }
  /// Why there will never be a value; nothing if there is one, or while nobody knows.
  std::optional<Failure> failure() const {
    if (!ready()) return std::nullopt;
    return detail::failure_of(*detail::object_of(*this));
  }

  /// True once the call has ended, with a value or with a failure to throw. A value of 100 KiB and
  /// more may then still lie on another node, or on the disk: get() brings it.
  bool ready() const { return detail::is_ready(*detail::object_of(*this)); }
  /// Waits until ready(), at most so long; -> ready().
  bool wait_for(std::chrono::milliseconds timeout) const {
    const auto& object = detail::object_of(*this);
    return detail::wait_objects({&object, 1}, 1, timeout) == 1;
  }

  /// Asks that the call be dropped if it has not begun. The ref then fails with Cancelled; a value
  /// that is there stays.
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
  static_assert(detail::require_sendable<Value>());
  if constexpr (std::is_same_v<Value, T>) {
    return detail::ref_to<Value>(detail::put_object(detail::encode<Value>(value)));
  } else {
    return detail::ref_to<Value>(detail::put_object(detail::encode<Value>(Value(value))));
  }
}
/// A literal is stored as a std::string.
inline Ref<std::string> put(const char* text) { return put(std::string(text)); }

/// A ref of any type, for waiting on refs of several types together. What it refers to is asked of
/// the ref that it was made of, which it equals. Any thread of the process may use one.
class AnyRef {
 public:
  template <class T>
  AnyRef(const Ref<T>& ref) : object_(detail::object_of(ref)) {}  // NOLINT: a ref is one

  /// As of the ref that it was made of.
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

/// What wait() found, in the order given: each ref stands in one of the two.
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

/// Throws as soon as one of them has failed, also while others are not ready.
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

/// Waits until `count` of the refs are ready (with a value or a failure) or the time is over. Never
/// throws what a call failed with. `ready` has at most `count` refs, the first ones in the order
/// given; others that are ready too are in `unready`, where the next wait finds them at once.
template <class T>
Waited<Ref<T>> wait(const std::vector<Ref<T>>& refs, std::size_t count = 1,
                    std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return detail::wait_for_some(refs, count, timeout);
}
/// The same of refs of several types: wait({first, second}).
inline Waited<AnyRef> wait(const std::vector<AnyRef>& refs, std::size_t count = 1,
                           std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return detail::wait_for_some(refs, count, timeout);
}

/// All the values, in the order given. Throws as soon as any of them fails, what it failed with: of
/// several that have failed, the first in the order given. The others go on.
template <class T>
requires(!std::is_void_v<T>) std::vector<T> get(const std::vector<Ref<T>>& refs) {
  return detail::get_all(refs, std::nullopt);
}
/// The same; throws TimedOut, which says how many are missing, where they are not all there in time.
/// The calls go on.
template <class T>
requires(!std::is_void_v<T>) std::vector<T> get(const std::vector<Ref<T>>& refs,
                                                std::chrono::milliseconds timeout) {
  return detail::get_all(refs, timeout);
}
/// The same of refs in braces: get({first, second}).
template <class T>
requires(!std::is_void_v<T>) std::vector<T> get(
    std::initializer_list<Ref<T>> refs,
    std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return detail::get_all(std::vector<Ref<T>>(refs), timeout);
}
/// Waits for all. Throws as soon as any of them fails, as the above.
inline void get(const std::vector<Ref<void>>& refs) { detail::require_all(refs, std::nullopt); }
inline void get(const std::vector<Ref<void>>& refs, std::chrono::milliseconds timeout) {
  detail::require_all(refs, timeout);
}

}  // namespace troupe
