#include "collective/host/channel.hpp"

#include <vector>

#include "os/futex.hpp"

namespace troupe::train {
namespace {

constexpr int kSpins = 1000;
constexpr std::chrono::milliseconds kShortSlice{1};  // where either side may move first

struct Move {
  Channel& to;
  std::span<const std::byte> out;
  Channel& from;
  std::span<std::byte> in;

  bool done() const { return out.empty() && in.empty(); }
  bool some() {
    const bool put = !out.empty() && to.put(out);
    const bool taken = !in.empty() && from.take(in);
    return put || taken;
  }
  bool has_ended() const {
    return (!out.empty() && to.has_ended()) || (!in.empty() && from.has_ended());
  }
  Channel& awaited() const { return in.empty() ? to : from; }
  void sleep() const {
    if (in.empty()) return to.wait_to_put(Patience::kSlice);
    from.wait_to_take(out.empty() ? Patience::kSlice : kShortSlice);
  }
};

}  // namespace

void exchange(Patience& patience, const std::function<void()>& stop, Channel& to,
              std::span<const std::byte> out, Channel& from, std::span<std::byte> in) {
  Move move{to, out, from, in};
  for (int spins = 0; !move.done();) {
    if (move.some()) {
      spins = 0;
    } else if (++spins < kSpins) {
      os::relax();
    } else {
      stop();
      patience.check([&] { return std::vector{move.awaited().peer()}; });
      // Asked before the last look: what was put before the end counts.
      const bool ended = move.has_ended();
      if (move.some()) continue;
      if (ended) (!move.in.empty() && from.has_ended() ? from : to).throw_ended();
      move.sleep();
    }
  }
}

}  // namespace troupe::train
