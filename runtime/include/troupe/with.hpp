#pragma once

#include <chrono>
#include <utility>

#include <troupe/actor.hpp>
#include <troupe/errors.hpp>
#include <troupe/gang.hpp>
#include <troupe/options.hpp>
#include <troupe/task.hpp>

namespace troupe {

/// Options to start a task, an actor or a gang with: `with({.gpus = 1, .name =
/// "a"}).spawn<Counter>(10)`. A value; may be kept.
class With {
 public:
  explicit With(const Options& options) : options_(detail::own(options)) {}

  /// Throws std::invalid_argument if the options have a name: only an actor can be found by one.
  template <auto F, class... A>
  detail::TaskRef<F> task(A&&... arguments) const {
    return detail::start_task<F>(detail::for_task(options_), std::forward<A>(arguments)...);
  }
  /// Throws std::invalid_argument if the options have retries: an actor is not restarted.
  template <class T, class... A>
  Actor<T> spawn(A&&... arguments) const {
    return detail::start_actor<T>(detail::for_actor(options_), std::forward<A>(arguments)...);
  }
  /// Returns the actor of that name if there is one, else makes one, also when several programs ask
  /// for it at the same time. Waits until the actor is constructed, however long that takes; the
  /// arguments may be used several times. Throws what find() throws, except TimedOut, and what the
  /// constructor throws.
  template <class T, class... A>
  Actor<T> find_or_spawn(const A&... arguments) const {
    for (auto patience = std::chrono::milliseconds(0);; patience = std::chrono::seconds(10)) {
      try {
        return find<T>(options_.name, patience);
      } catch (const TimedOut&) {
      }
      const auto made = spawn<T>(arguments...);
      try {
        made.ready().get();
        return made;
      } catch (const NameTaken&) {  // by one that is being constructed, which may fail
      }
    }
  }
  /// Like troupe::gang, with these options for each rank. Also throws std::invalid_argument if the
  /// options have a name or retries, which a rank cannot have.
  template <class T, class... A>
  Gang<T> gang(const GangShape& shape, A&&... arguments) const {
    return detail::place_ranks<T>(shape, options_, true, std::forward<A>(arguments)...).get();
  }
  /// Like troupe::place, with these options for each rank: does not wait until the gang is placed.
  template <class T, class... A>
  PendingGang<T> place(const GangShape& shape, A&&... arguments) const {
    return detail::place_ranks<T>(shape, options_, false, std::forward<A>(arguments)...);
  }

 private:
  detail::RequestOptions options_;
};

/// Throws std::invalid_argument, naming the option, for an invalid amount.
inline With with(const Options& options) { return With(options); }

}  // namespace troupe
