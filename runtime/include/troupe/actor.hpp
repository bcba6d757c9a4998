#pragma once

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include <troupe/detail/call.hpp>
#include <troupe/ref.hpp>

namespace troupe {

template <class T>
class Actor;

namespace detail {
template <auto M>
using MethodSignature = decltype(method_signature<M>());
template <auto M>
using MethodRef = Ref<Returned<typename MethodSignature<M>::Result>>;

template <class T>
Actor<T> actor_of(ActorPtr state);

/// Packs a call of M on a T.
template <class T, auto M, class... A>
CallSpec make_method_call(A&&... arguments) {
  static_assert(std::is_base_of_v<std::remove_const_t<typename MethodSignature<M>::Self>, T>,
                "troupe: this method belongs to another class than the actor's");
  if constexpr (std::is_base_of_v<std::remove_const_t<typename MethodSignature<M>::Self>, T>) {
    return make_call<M, T>(MethodSignature<M>{}, std::forward<A>(arguments)...);
  } else {
    return {};
  }
}
}  // namespace detail

/// A handle on an object of class T that lives in its own process somewhere in the cluster. Its
/// methods run there one at a time, and the calls of one caller run in order. Handles are cheap to
/// copy and travel inside arguments and results. Any thread of the process may use one.
///
/// The actor ends with the last handle in the process that made it. An actor that has a name, or of
/// which a handle has travelled to another process, lives until its job ends or kill() is called.
template <class T>
class Actor {
 public:
  /// An empty handle, which can only be assigned to.
  Actor() = default;

  /// Calls a method: a member function of T or of a base of it, or a function or captureless lambda
  /// that takes a T& first. Returns at once; arguments as with task(). Runs at most once: if the
  /// process dies, the ref fails with ActorDied.
  template <auto M, class... A>
  detail::MethodRef<M> call(A&&... arguments) const {
    return detail::ref_to<typename detail::MethodRef<M>::value_type>(
        detail::call_actor(state(), detail::make_method_call<T, M>(std::forward<A>(arguments)...)));
  }

  /// For call(&T::method, ...): the compiler says what to write instead.
  template <class M, class... A>
  detail::Mistaken call(M&&, A&&...) const {
    static_assert(
        !std::is_same_v<M, M>,
        "troupe: the method is a template argument: actor.call<&T::method>(arguments...)");
    return {};
  }

  /// Resolves once the actor is constructed; fails with what its constructor threw, Impossible, or
  /// ActorDied.
  Ref<void> ready() const { return detail::ref_to<void>(detail::actor_ready(state())); }

  /// Ends the actor's process, whatever it is doing, and returns at once. Calls under way and later
  /// calls fail with ActorDied, except calls that arrive before the process is gone (usually within
  /// a millisecond).
  void kill() const { detail::kill_actor(state()); }

  explicit operator bool() const { return state_ != nullptr; }
  friend bool operator==(const Actor&, const Actor&) = default;

  void save(detail::OutArchive& archive) const { archive(detail::share_actor(state())); }
  void load(detail::InArchive& archive) {
    detail::ActorId id = 0;
    archive(id);
    state_ = detail::adopt_actor(id, detail::type_name<T>);
  }

  /// For the runtime's templates. Throws std::logic_error if the handle is empty.
  const detail::ActorPtr& state() const {
    if (!state_) throw std::logic_error("troupe: an empty Actor handle stands for no actor");
    return state_;
  }

 private:
  friend Actor detail::actor_of<T>(detail::ActorPtr);
  detail::ActorPtr state_;
};

namespace detail {
template <class T>
Actor<T> actor_of(ActorPtr state) {
  Actor<T> actor;
  actor.state_ = std::move(state);
  return actor;
}

template <class T, class... A>
Actor<T> start_actor(const RequestOptions& options, A&&... arguments) {
  return actor_of<T>(
      spawn_actor(make_constructor_call<T>(std::forward<A>(arguments)...), type_name<T>, options));
}
}  // namespace detail

/// Makes a T(arguments...) in its own process, which reserves no CPU: see Options::cpus. Returns at
/// once; calls may be made before the actor exists. Refs among the arguments are resolved first.
template <class T, class... A>
Actor<T> spawn(A&&... arguments) {
  return detail::start_actor<T>(detail::default_actor_options(), std::forward<A>(arguments)...);
}

/// Finds the actor of that name (Options::name) in this job, or in the cluster if the name has a
/// namespace. Waits until the actor can be called; with a timeout of 0 it looks once. Throws
/// TimedOut if there is no such actor in time, Refused if the actor is not a T, if it belongs to
/// another job and is not detached, or if no actor can have that name.
template <class T>
Actor<T> find(std::string_view name, std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
  return detail::actor_of<T>(detail::find_actor(name, detail::type_name<T>, timeout));
}

}  // namespace troupe
