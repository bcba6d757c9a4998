#include <troupe/train/progress.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <troupe/detail/terminal_picture.hpp>

#include "progress/progress_line.hpp"

namespace troupe::train::detail {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using troupe::detail::TerminalPicture;
using troupe::detail::TrialEvent;

constexpr auto kEvery = 200ms;         // what the ranks are asked for
constexpr auto kBetweenDraws = 500ms;  // where nothing has come
constexpr auto kLeastBetween = 20ms;   // where much comes
constexpr auto kBetweenLines = 10s;
constexpr std::size_t kColumnsOfLines = 160;

std::atomic<bool> terminal_is_taken{false};

bool can_move_cursor(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

std::size_t columns_of_terminal(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

/// It is not stopped (Ctrl-S), somebody reads it, and it is not another program's by now: a shell
/// has it while this program is in the background.
bool takes_output(int descriptor) {
  pollfd wait{.fd = descriptor, .events = POLLOUT, .revents = 0};
  if (::poll(&wait, 1, 0) <= 0 || (wait.revents & POLLOUT) == 0) return false;
  const auto foreground = ::tcgetpgrp(descriptor);
  return foreground < 0 || foreground == ::getpgrp();
}

/// What cannot be written is dropped: nobody reads it.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

class ProgressBar::Impl {
 public:
  enum class Kind : std::uint8_t {
    Picture,  ///< a line of a terminal that is drawn in its place, above which others print
    Inline,   ///< the same without an end of the line, below which this thread prints
    Lines,
  };

  Impl(Kind kind, std::string label) : kind_(kind) {
    view_.label = std::move(label);
    if (kind != Kind::Lines) drawn_ -= kLeastBetween;  // what comes first is drawn at once
  }
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  TimePoint next() const;
  void on_event(const TrialEvent& event);
  /// Unless it is too soon.
  void draw();
  void hide();

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  TimePoint due() const;
  void draw_now();

  const int descriptor_ = STDERR_FILENO;
  const Kind kind_;
  const TimePoint began_ = Clock::now();
  ProgressView view_;
  double event_elapsed_s_ = 0;  // what the last event said
  double event_came_ = 0;
  bool has_come_ = false;  // anything to show
  bool is_drawn_ = false;
  bool is_hidden_ = false;          // from hide() until the next time
  TimePoint drawn_ = Clock::now();  // the last time
};

ProgressBar::Impl::~Impl() {
  if (kind_ == Kind::Lines) return;
  try {
    if (!is_drawn_) draw_now();  // it was hidden from a function that threw
  } catch (const std::exception&) {
    // There is no memory for it.
  }
  if (kind_ == Kind::Inline && is_drawn_) write_all(descriptor_, "\n");
  if (kind_ == Kind::Picture) TerminalPicture::of_process().leave(descriptor_);
  terminal_is_taken = false;
}

ProgressBar::TimePoint ProgressBar::Impl::due() const {
  if (kind_ == Kind::Lines) return drawn_ + kBetweenLines;
  return drawn_ + kLeastBetween;
}

ProgressBar::TimePoint ProgressBar::Impl::next() const {
  return is_hidden_ ? due() : std::max(due(), drawn_ + kBetweenDraws);
}

void ProgressBar::Impl::on_event(const TrialEvent& event) {
  event_came_ = now();
  event_elapsed_s_ = event.elapsed_s;
  if (event.progress) view_.estimate.on(*event.progress, event_came_);
  has_come_ = has_come_ || event.progress || event.kind == TrialEvent::Kind::Report;
  if (event.kind == TrialEvent::Kind::Report) {
    ++view_.reports;
    view_.metrics = event.metrics;
  }
  if (event.kind == TrialEvent::Kind::Finished) {
    view_.has_ended = true;
    view_.is_stopped = event.stopped;
    draw_now();
  } else if (event.kind == TrialEvent::Kind::Progress) {
    draw();
  }
}

void ProgressBar::Impl::draw() {
  if (Clock::now() >= due()) draw_now();
}

void ProgressBar::Impl::draw_now() {
  drawn_ = Clock::now();
  is_hidden_ = false;
  if (!has_come_) return;
  const auto at = now();
  view_.elapsed_s = event_elapsed_s_ + (view_.has_ended ? 0 : at - event_came_);
  if (kind_ == Kind::Lines)
    return write_all(descriptor_, render_progress(view_, at, kColumnsOfLines) + "\n");
  if (!takes_output(descriptor_)) return;
  // The last column stays free: terminals differ in where the cursor stands after it.
  const auto line = render_progress(view_, at, columns_of_terminal(descriptor_) - 1);
  if (kind_ == Kind::Inline) {
    write_all(descriptor_, "\r" + line + "\x1b[K");
  } else {
    TerminalPicture::of_process().draw(
        descriptor_, line + "\n", [this](std::string_view text) { write_all(descriptor_, text); });
  }
  is_drawn_ = true;
}

void ProgressBar::Impl::hide() {
  if (kind_ == Kind::Lines || !is_drawn_ || !takes_output(descriptor_)) return;
  if (kind_ == Kind::Inline) {
    write_all(descriptor_, "\r\x1b[K");
  } else {
    TerminalPicture::of_process().replace(
        descriptor_, {}, [this](std::string_view text) { write_all(descriptor_, text); });
  }
  is_drawn_ = false;
  is_hidden_ = true;
}

ProgressBar::ProgressBar(ShowProgress show, std::string label, std::string_view function,
                         bool shares_thread) {
  if (show == ShowProgress::Off) return;
  const bool is_terminal = can_move_cursor(STDERR_FILENO);
  if (!is_terminal && show == ShowProgress::Auto) return;
  if (is_terminal && terminal_is_taken.exchange(true)) return;
  if (label.empty()) label = label_of_function(function);
  const auto on_terminal = shares_thread ? Impl::Kind::Inline : Impl::Kind::Picture;
  impl_ = std::make_unique<Impl>(is_terminal ? on_terminal : Impl::Kind::Lines, std::move(label));
}

ProgressBar::~ProgressBar() = default;

std::chrono::milliseconds ProgressBar::every() const { return impl_ ? kEvery : 0ms; }

std::optional<ProgressBar::TimePoint> ProgressBar::next() const {
  return impl_ ? std::optional(impl_->next()) : std::nullopt;
}

void ProgressBar::on_event(const TrialEvent& event) {
  if (impl_) impl_->on_event(event);
}
void ProgressBar::draw() {
  if (impl_) impl_->draw();
}
void ProgressBar::hide() {
  if (impl_) impl_->hide();
}

}  // namespace troupe::train::detail
