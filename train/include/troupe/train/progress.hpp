#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/detail/trainable/trial_session.hpp>

namespace troupe::train {

/// Whether the standard error of the process that calls train::run shows how far the run is: a line
/// with a bar, the rate, the time that has passed and is left, and the last metrics. What it counts
/// are the epochs of Context::epochs(), and the batches of Context::loader() or what
/// Context::progress() is told.
enum class ShowProgress : std::uint8_t {
  /// Where standard error is a terminal that can move its cursor, the line is drawn again and again
  /// in its place, and its last state stays.
  Auto,
  Off,
  On,  ///< elsewhere, too: there a new line every 10 s, and at the end
};

namespace detail {

/// What train::run shows of one run. Used by the thread that called it. The training in
/// other processes never waits for it, and what a terminal does not take at once is not drawn. Of
/// several runs in one process at the same time one is shown. Lines that ranks print go above the
/// line that is drawn (TerminalPicture), and so does what is printed between hide() and the next
/// drawing.
///
/// A run in this process prints on the thread that draws, at any time: nothing is drawn over what
/// it may have printed, so its output may begin behind the bar, which is then drawn again below.
class ProgressBar {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `label`: the run's name; empty: the name of `function` stands for it. `shares_thread`: the
  /// run's function is called by the thread that draws.
  ProgressBar(ShowProgress show, std::string label, std::string_view function, bool shares_thread);
  /// Its last state stays, with the cursor below it.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// For RunInfo::progress_every; 0: nothing is shown.
  std::chrono::milliseconds every() const;
  /// When draw() is to be called though nothing has come; none: never.
  std::optional<TimePoint> next() const;
  void on_event(const troupe::detail::TrialEvent& event);
  void draw();
  /// Before code of the user is called, which may print.
  void hide();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;  // nullptr: nothing is shown
};

}  // namespace detail
}  // namespace troupe::train
