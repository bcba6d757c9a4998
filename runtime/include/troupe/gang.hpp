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

namespace troupe {

struct GangOptions {
  int size = 1;       ///< ranks
  Options each = {};  ///< what each rank needs
  Strategy strategy = Strategy::Pack;
  std::optional<std::chrono::milliseconds> timeout = {};  ///< for its placement; none: as long as it takes
};
static_assert(std::is_trivially_destructible_v<GangOptions>);

/// n actors of class T that were placed together: ranks 0 .. size()-1, which know each other through this_gang(). When
/// one of them dies the gang is broken: the others leave their collectives with GangBroken, and calls of the dead rank fail
/// with ActorDied, which names it. The others answer on, so that what they have can be saved. The gang, with all it holds,
/// ends with the last copy of this.
template <class T>
class Gang {
 public:
  Gang() = default;
  explicit Gang(std::vector<Actor<T>> ranks) : ranks_(std::move(ranks)) {}

  std::size_t size() const { return ranks_.size(); }
  /// Throws std::out_of_range.
  const Actor<T>& rank(std::size_t rank) const { return ranks_.at(rank); }
  auto begin() const { return ranks_.begin(); }
  auto end() const { return ranks_.end(); }

  /// Calls M on every rank with the same arguments, which are encoded once. -> one ref for each rank, in order.
  template <auto M, class... A>
  std::vector<detail::MethodRef<M>> all(A&&... arguments) const {
    const auto call = detail::make_method_call<T, M>(std::forward<A>(arguments)...);
    std::vector<detail::MethodRef<M>> refs;
    refs.reserve(ranks_.size());
    for (const auto& actor : ranks_) {
      refs.push_back(
          detail::ref_to<typename detail::MethodRef<M>::value_type>(detail::call_actor(actor.state(), call)));
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

/// Places `options.size` actors T(arguments...) together, or none of them, and waits until they are placed.
/// Throws Impossible (naming what is missing) if that can never be, TimedOut, std::invalid_argument for bad options.
template <class T, class... A>
Gang<T> gang(const GangOptions& options, A&&... arguments) {
  constexpr int most = 1 << 16;
  if (options.size < 1 || options.size > most) {
    throw std::invalid_argument("GangOptions::size must be between 1 and 65536, not " + std::to_string(options.size));
  }
  const detail::GangRequest request{static_cast<std::uint32_t>(options.size), options.strategy};
  auto states =
      detail::spawn_gang(detail::make_constructor_call<T>(std::forward<A>(arguments)...), detail::type_name<T>, request,
                         detail::for_rank(detail::own(options.each)), options.timeout);
  std::vector<Actor<T>> ranks;
  ranks.reserve(states.size());
  for (auto& state : states) ranks.push_back(detail::actor_of<T>(std::move(state)));
  return Gang<T>(std::move(ranks));
}

}  // namespace troupe
