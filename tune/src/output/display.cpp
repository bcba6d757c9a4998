#include "output/display.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <troupe/detail/terminal_picture.hpp>

#include "text/cause.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr Seconds kBetweenDraws{0.2};
constexpr std::size_t kLinesAboveRows = 5;
constexpr std::size_t kMostRows = 40;
constexpr std::size_t kMostCauses = 100;

troupe::detail::TerminalPicture& picture() { return troupe::detail::TerminalPicture::of_process(); }

struct Size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

Size size_of(int terminal) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool has(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

}  // namespace

Display::~Display() {
  if (kind_ == Kind::Table) picture().leave(fd_);
}

Display Display::for_descriptor(int fd) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = !terminal || std::string_view(terminal) == "dumb";
  const bool table = ::isatty(fd) == 1 && !dumb;
  return {table ? Kind::Table : Kind::Lines, fd, table && !has("NO_COLOR")};
}

void Display::write(const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Display::show(const Event& event, const Trial* trial, const Experiment& experiment) {
  if (kind_ != Kind::Lines) return;
  const bool has_failed =
      event.kind == Event::Kind::Failed && trial != nullptr && trial->status == Status::Errored;
  const auto& options = experiment.options();
  const auto line = render_event(
      event, trial, {experiment.best(), options.objective, !options.objectives.empty()},
      has_failed ? first_with_error_of(*trial) : std::nullopt);
  if (line) write(*line);
}

/// None: its error was not shown yet, or is one of too many.
std::optional<TrialId> Display::first_with_error_of(const Trial& trial) {
  auto cause = cause_of(trial.error);
  if (const auto known = errors_.find(cause); known != errors_.end()) return known->second;
  if (errors_.size() < kMostCauses) errors_.emplace(std::move(cause), trial.id);
  return std::nullopt;
}

void Display::note(const std::string& notice, Seconds now) {
  if (kind_ == Kind::Lines) write(fmt::format("[{:>7}] note: {}\n", short_time(now), notice));
}

void Display::say(const std::string& text, Seconds now) {
  if (kind_ == Kind::None) return;
  picture().replace(fd_, fmt::format("[{:>7}] {}\n", short_time(now), text),
                    [this](const std::string& all) { write(all); });
  last_drawn_.reset();
}

void Display::draw(const Experiment& experiment, Seconds now) {
  const auto [columns, rows] = size_of(fd_);
  // A table as high as the terminal would scroll, and the cursor could not go back to its top.
  const auto most =
      rows > kLinesAboveRows + 2 ? std::min(rows - kLinesAboveRows - 2, kMostRows) : 1;
  auto overview = overview_of(experiment, now, most, ranks_);
  if (in_use_) overview.in_use = in_use_();
  picture().draw(fd_, render_table(overview, {columns, colour_}),
                 [this](const std::string& text) { write(text); });
  last_drawn_ = now;
}

void Display::tick(const Experiment& experiment, Seconds now) {
  if (kind_ != Kind::Table) return;
  if (!last_drawn_ || now - *last_drawn_ >= kBetweenDraws) draw(experiment, now);
}

void Display::finish(const Experiment& experiment, const Overview& overview) {
  if (kind_ == Kind::None) return;
  if (kind_ == Kind::Table) draw(experiment, overview.elapsed);
  picture().leave(fd_);
  write(render_summary(overview, {.colour = colour_}));
}

}  // namespace troupe::tune
