#pragma once

#include <utility>

#include <troupe/actor.hpp>
#include <troupe/options.hpp>
#include <troupe/task.hpp>

namespace troupe {

/// Options, ready to start something with: `with({.gpus = 1, .name = "a"}).spawn<Counter>(10)`. A
/// value; may be kept.
class With {
 public:
  explicit With(const Options& options) : options_(detail::own(options)) {}

  /// Throws std::invalid_argument where there is a name: only an actor can be found by one.
  template <auto F, class... A>
  detail::TaskRef<F> task(A&&... arguments) const {
    return detail::start_task<F>(detail::for_task(options_), std::forward<A>(arguments)...);
  }
  /// Throws std::invalid_argument where there are retries: an actor is not started again.
  template <class T, class... A>
  Actor<T> spawn(A&&... arguments) const {
    return detail::start_actor<T>(detail::for_actor(options_), std::forward<A>(arguments)...);
  }

 private:
  detail::RequestOptions options_;
};

/// Throws std::invalid_argument, naming the option, for an amount that cannot be.
inline With with(const Options& options) { return With(options); }

}  // namespace troupe
