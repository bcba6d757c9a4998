#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace troupe::transport {

/// A deadline for what others are to say, in time that this process itself runs: while its loop
/// stands still (a machine that is suspended or shared, a stopped or starved process, a long
/// handler) nothing counts, and what came meanwhile is read before the deadline is over. On a loop
/// that is always late each slice counts, so that it comes to its end there too. Precise to kSlice.
/// Belongs to one loop; its end cancels it.
///
///     [off] --start--> [waiting: looks each kSlice] --all of the time has run--> [off], calls `over`
///       ^----cancel--------'
class SilenceTimer {
 public:
  using Clock = std::chrono::steady_clock;
  /// How often it looks: what it finds to be later by more than one slice, this process stood
  /// still.
  static constexpr std::chrono::milliseconds kSlice{100};

  explicit SilenceTimer(const boost::asio::any_io_executor& loop);
  ~SilenceTimer() { cancel(); }
  SilenceTimer(const SilenceTimer&) = delete;
  SilenceTimer& operator=(const SilenceTimer&) = delete;

  /// A timer that waits already begins anew. `over` is called once, from the loop, which keeps it
  /// until then, or until it has come to know of cancel(): what it holds lives as long.
  void start(std::chrono::milliseconds time, std::function<void()> over);
  void cancel();

 private:
  struct Wait;
  std::shared_ptr<Wait> wait_;
};

/// Runs the loop on this thread until `done` holds, at most for `time` as SilenceTimer measures it.
/// -> done()
bool run_until(boost::asio::io_context& loop, std::chrono::milliseconds time,
               const std::function<bool()>& done);

}  // namespace troupe::transport
