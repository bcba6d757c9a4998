#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/actor.hpp>
#include <troupe/gang_context.hpp>
#include <troupe/options.hpp>
#include <troupe/ref.hpp>

namespace troupe {

struct GangOptions {
  int size = 1;       ///< ranks
  Options each = {};  ///< what each rank needs
  Strategy strategy = Strategy::Pack;
  /// For the gang's placement; none: as long as it takes.
  std::optional<std::chrono::milliseconds> timeout = {};
};
static_assert(std::is_trivially_destructible_v<GangOptions>);

/// GangOptions without what each rank needs, which `with` has: `with({.gpus = 1}).gang<T>({.size =
/// 4})`.
struct GangShape {
  int size = 1;
  Strategy strategy = Strategy::Pack;
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// n actors of class T that were placed together: ranks 0 .. size()-1, which know each other
/// through this_gang().
///
/// When a rank dies, the gang is broken: the others leave their collectives with GangBroken, and
/// calls on the dead rank fail with ActorDied, which names it. The others still answer calls, so
/// that their state can be saved.
///
/// A rank whose call fails, for example by an exception, leaves its communicators: ranks that wait
/// for it there get GangBroken. All ranks can be called again, and make new communicators.
///
/// The gang and its resources end with the last copy of this object and the calls made on it.
/// kill() ends the gang at once.
template <class T>
class Gang {
 public:
  Gang() = default;
  explicit Gang(std::vector<Actor<T>> ranks) : ranks_(std::move(ranks)) {}

  std::size_t size() const { return ranks_.size(); }
  /// Throws std::out_of_range, naming the rank.
  const Actor<T>& rank(std::size_t rank) const {
    if (rank < size()) return ranks_[rank];
    throw std::out_of_range("rank " + std::to_string(rank) + " of a gang of " +
                            std::to_string(size()) + " ranks: they are numbered from 0");
  }
  auto begin() const { return ranks_.begin(); }
  auto end() const { return ranks_.end(); }

  /// Calls M on every rank with the same arguments, which are encoded once. -> one ref for each
  /// rank, in order.
  template <auto M, class... A>
  std::vector<detail::MethodRef<M>> all(A&&... arguments) const {
    const auto call = detail::make_method_call<T, M>(std::forward<A>(arguments)...);
    std::vector<detail::MethodRef<M>> refs;
    refs.reserve(ranks_.size());
    for (const auto& actor : ranks_) {
      refs.push_back(detail::ref_to<typename detail::MethodRef<M>::value_type>(
          detail::call_actor(actor.state(), call)));
    }
    return refs;
  }

  /// Ends every rank now.
  void kill() const {
    for (const auto& actor : ranks_) actor.kill();
  }

 private:
  std::vector<Actor<T>> ranks_;
};

/// A gang that was requested and may not be placed yet. The request keeps its place in the head's
/// queue until the gang is placed, however often the handle is asked for its state.
///
///   [pending] --placed--> [placed] --get()--> a Gang
///       |                    |
///       +--- cancel(), or the end of this handle ---> the request is taken back, or the gang ends: nothing is left of it
///       +--- GangOptions::timeout, a refusal by the head ---> failed
///
/// Costs one message to the head, and no thread. One thread at a time may use the handle; any
/// thread may use the ref that placed() returns. The ref's cancel() takes the request back too, as
/// long as the gang is not placed.
template <class T>
class PendingGang {
 public:
  /// A handle on nothing; only assignment makes use of it.
  PendingGang() = default;
  /// For the runtime's templates.
  explicit PendingGang(detail::GangPlacement placement) : placement_(std::move(placement)) {}
  PendingGang(PendingGang&& other) noexcept : placement_(std::exchange(other.placement_, {})) {}
  PendingGang& operator=(PendingGang&& other) noexcept {
    if (this == &other) return *this;
    cancel();
    placement_ = std::exchange(other.placement_, {});
    return *this;
  }
  ~PendingGang() { cancel(); }

  /// A ref that is ready once the gang is placed, or fails with what get() throws once it is
  /// certain that the gang will not be placed. One thread can wait for it together with other refs,
  /// and so for many gangs and the calls on them.
  Ref<void> placed() const {
    if (!placement_.placed)
      throw std::logic_error("troupe: an empty PendingGang stands for no gang");
    return detail::ref_to<void>(placement_.placed);
  }
  /// Waits until placed() is ready, at most for `timeout`. -> whether it is ready
  bool wait_for(std::chrono::milliseconds timeout) const { return placed().wait_for(timeout); }

  /// Waits until the gang is placed and returns it; the handle is empty from then on. Throws
  /// Impossible (naming what is missing) if no such gang can ever be placed, TimedOut once
  /// GangOptions::timeout is over, Cancelled after cancel(), Disconnected if the cluster has ended.
  Gang<T> get() {
    placed().get();
    std::vector<Actor<T>> ranks;
    ranks.reserve(placement_.ranks.size());
    for (auto& state : placement_.ranks) ranks.push_back(detail::actor_of<T>(std::move(state)));
    placement_ = {};
    return Gang<T>(std::move(ranks));
  }

  /// Takes the request back, or ends the gang if it has been placed meanwhile and get() was not
  /// called. Returns at once. After get(), and on an empty handle, it does nothing.
  void cancel() {
    if (placement_.placed) detail::withdraw_gang(placement_);
  }

 private:
  detail::GangPlacement placement_;
};

namespace detail {
template <class T, class... A>
PendingGang<T> place_ranks(const GangShape& shape, const RequestOptions& each, bool awaited,
                           A&&... arguments) {
  constexpr int most = 1 << 16;
  if (shape.size < 1 || shape.size > most) {
    throw std::invalid_argument("the size of a gang must be between 1 and 65536, not " +
                                std::to_string(shape.size));
  }
  const GangRequest request{static_cast<std::uint32_t>(shape.size), shape.strategy, awaited};
  return PendingGang<T>(place_gang(make_constructor_call<T>(std::forward<A>(arguments)...),
                                   actor_label<T>, request, for_rank(each), shape.timeout));
}
}  // namespace detail

/// Requests `options.size` actors T(arguments...), placed together or not at all, and returns at
/// once. Throws std::invalid_argument for invalid options, Refused if this process is in no
/// cluster.
template <class T, class... A>
PendingGang<T> place(const GangOptions& options, A&&... arguments) {
  return detail::place_ranks<T>({options.size, options.strategy, options.timeout},
                                detail::own(options.each), false, std::forward<A>(arguments)...);
}

/// Places `options.size` actors T(arguments...) together, or none of them, and waits until they are
/// placed: place(), then PendingGang::get(), with their errors. Once it has waited 5 s, the program
/// says on standard error what it waits for.
template <class T, class... A>
Gang<T> gang(const GangOptions& options, A&&... arguments) {
  return detail::place_ranks<T>({options.size, options.strategy, options.timeout},
                                detail::own(options.each), true, std::forward<A>(arguments)...)
      .get();
}

}  // namespace troupe
