#include "transport/silence_timer.hpp"

#include <algorithm>
#include <utility>

namespace troupe::transport {

struct SilenceTimer::Wait : std::enable_shared_from_this<SilenceTimer::Wait> {
  explicit Wait(const boost::asio::any_io_executor& loop) : timer(loop) {}

  boost::asio::steady_timer timer;
  int round = 0;          // of start() and cancel(): a look of an earlier one may be queued already
  bool was_late = false;  // at the end of the time: then it looks once more, and not again

  /// The loop keeps `over` meanwhile, so that whoever it holds goes with the loop at the latest.
  void look_later(Clock::duration left, std::function<void()> over) {
    const auto slice = std::min<Clock::duration>(left, kSlice);
    const auto due = Clock::now() + slice;
    timer.expires_at(due);
    timer.async_wait([self = shared_from_this(), begun = round, left = left - slice, due,
                      over = std::move(over)](const boost::system::error_code& stopped) mutable {
      if (stopped || begun != self->round) return;
      const bool late = Clock::now() - due > kSlice;
      if (left <= Clock::duration::zero() && late && !std::exchange(self->was_late, true)) {
        left = kSlice;  // what came while nothing ran is read in between
      }
      if (left > Clock::duration::zero()) return self->look_later(left, std::move(over));
      over();
    });
  }
};

SilenceTimer::SilenceTimer(const boost::asio::any_io_executor& loop)
    : wait_(std::make_shared<Wait>(loop)) {}

void SilenceTimer::start(std::chrono::milliseconds time, std::function<void()> over) {
  ++wait_->round;
  wait_->was_late = false;
  wait_->look_later(time, std::move(over));
}

void SilenceTimer::cancel() {
  ++wait_->round;
  wait_->timer.cancel();
}

bool run_until(boost::asio::io_context& loop, std::chrono::milliseconds time,
               const std::function<bool()>& done) {
  bool over = false;
  SilenceTimer timer(loop.get_executor());
  timer.start(time, [&over] { over = true; });
  while (!done() && !over) {
    if (loop.stopped()) loop.restart();
    loop.run_one();
  }
  return done();
}

}  // namespace troupe::transport
