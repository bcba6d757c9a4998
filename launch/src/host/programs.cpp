#include "host/programs.hpp"
#include "plan/clock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::launch {
namespace {

constexpr std::size_t kMostWaiting = 4 << 20;
constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::chrono::milliseconds kDrain{200};
constexpr std::chrono::seconds kLookAtMemory{2};  // which explains deaths within 10 s

}  // namespace

struct Programs::Stream {
  node::LineCutter lines{0, kLongestLine};
};

struct Programs::Running {
  int local = 0;
  std::optional<Program> program;  // none: it was not started
  std::array<Stream, 2> streams;   // output, error
  std::optional<RankEnd> end;      // not handed out yet
  std::optional<Clock::time_point> drained_by;
  std::optional<Clock::time_point> killed_at;
  bool told_to = false;
  bool over = false;

  bool ended() const { return end.has_value(); }
  os::UniqueFd& pipe(bool to_error) { return to_error ? program->error() : program->output(); }
};

Programs::Programs(const std::vector<ProgramSpec>& specs, node::MemoryKills memory)
    : memory_(std::move(memory)),
      memory_looked_(Clock::now()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      left_(specs.size()) {
  for (std::size_t local = 0; local < specs.size(); ++local) {
    auto& running = running_.emplace_back();
    running.local = static_cast<int>(local);
    auto started = Program::start(specs[local]);
    if (auto* why = std::get_if<NotStarted>(&started)) {
      running.end = {.local = running.local,
                     .exit_code = why->exit_code,
                     .not_started = std::move(why->why),
                     .at = now_in_seconds()};
      news_.exits.push_back(*running.end);
      finish(running);
    } else {
      running.program = std::move(std::get<Program>(started));
      pids_.push_back(running.program->pid());
    }
  }
  thread_ = std::thread([this] { run(); });
}

Programs::~Programs() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

HostNews Programs::next(std::chrono::milliseconds patience, bool with_output) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this, with_output] {
    if (!news_.exits.empty()) return true;
    return with_output && (waiting_ > 0 || !news_.ends.empty() || left_ == 0);
  });
  if (!with_output) return {.exits = std::exchange(news_.exits, {})};
  const bool was_full = waiting_ >= kMostWaiting;
  HostNews news = std::exchange(news_, {});
  waiting_ = 0;
  news.over = left_ == 0;
  if (was_full) ::eventfd_write(wake_.get(), 1);
  return news;
}

void Programs::stop(std::chrono::milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    told_to_stop_ = grace;
  }
  ::eventfd_write(wake_.get(), 1);
}

void Programs::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (leaving_) break;
      if (const auto grace = std::exchange(told_to_stop_, {})) {
        for (auto& running : running_) {
          if (running.ended() || !running.program) continue;
          const auto by = Clock::now() + *grace;
          if (!std::exchange(running.told_to, true)) {
            running.program->signal_group(SIGTERM);
            running.killed_at = by;
          } else if (running.killed_at) {  // told again: with less grace, never with more
            running.killed_at = std::min(*running.killed_at, by);
          }
        }
      }
    }
    poll_once();
    at_deadlines(Clock::now());
  }
  running_.clear();
}

int Programs::poll_once() {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  std::vector<std::pair<Running*, int>> of;  // 0, 1: its pipes; 2: its end
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    full = waiting_ >= kMostWaiting;
  }
  for (auto& running : running_) {
    if (running.over) continue;
    for (const bool to_error : {false, true}) {
      if (full || !running.pipe(to_error)) continue;
      polled.push_back({running.pipe(to_error).get(), POLLIN, 0});
      of.emplace_back(&running, to_error ? 1 : 0);
    }
    if (!running.ended()) {
      polled.push_back({running.program->ended_fd(), POLLIN, 0});
      of.emplace_back(&running, 2);
    }
  }
  const auto deadline = next_deadline();
  const auto wait =
      !deadline
          ? -1
          : std::max<std::int64_t>(
                0, std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count());
  const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(wait));
  if (ready <= 0) return ready;
  eventfd_t ignored = 0;
  if (polled.front().revents != 0) ::eventfd_read(wake_.get(), &ignored);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    auto& [running, what] = of[i];
    if (what == 2) on_ended(*running);
    if (what < 2 && !running->over) read(*running, what == 1);
  }
  for (auto& running : running_) {
    if (running.ended() && !running.over && !running.pipe(false) && !running.pipe(true))
      finish(running);
  }
  return ready;
}

bool Programs::read(Running& running, bool to_error) {
  auto& pipe = running.pipe(to_error);
  std::array<char, 65'536> buffer;
  const auto size = ::read(pipe.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {
    pipe.reset();
    return false;
  }
  running.streams[to_error].lines.append({buffer.data(), static_cast<std::size_t>(size)});
  hand_out(running, to_error, false);
  return true;
}

void Programs::hand_out(Running& running, bool to_error, bool all) {
  auto& lines = running.streams[to_error].lines;
  if (all) lines.cut();
  auto taken = lines.take();
  if (taken.text.empty()) return;
  const std::lock_guard lock(mutex_);
  waiting_ += taken.text.size();
  news_.written.push_back(
      {.local = running.local, .to_error = to_error, .text = std::move(taken.text)});
  changed_.notify_all();
}

void Programs::on_ended(Running& running) {
  // Before it is reaped, while its process group's number cannot be another's.
  if (running.told_to) running.program->signal_group(SIGKILL);
  auto limit = running.program->limit();
  const auto ended = running.program->reap();
  if (ended.signal == SIGKILL && !running.told_to) limit = memory_.explain(Clock::now());
  running.end = {.local = running.local,
                 .pid = running.program->pid(),
                 .exit_code = ended.exit_code,
                 .signal = ended.signal,
                 .at = now_in_seconds(),
                 .was_told_to = running.told_to,
                 .limit = std::move(limit)};
  running.killed_at.reset();
  running.drained_by = Clock::now() + kDrain;
  const std::lock_guard lock(mutex_);
  news_.exits.push_back(*running.end);
  changed_.notify_all();
}

/// Its pipes have ended, or what it left behind holds them open.
void Programs::finish(Running& running) {
  for (const bool to_error : {false, true}) {
    constexpr int kMostReads = 64;  // of 64 KiB, as what is left behind may write for ever
    for (int i = 0; i < kMostReads && running.program && running.pipe(to_error); ++i) {
      if (!read(running, to_error)) break;
    }
    if (running.program) running.pipe(to_error).reset();
    hand_out(running, to_error, true);
  }
  running.over = true;
  running.drained_by.reset();
  const std::lock_guard lock(mutex_);
  news_.ends.push_back(*running.end);
  --left_;
  changed_.notify_all();
}

std::optional<Programs::Clock::time_point> Programs::next_deadline() const {
  std::optional<Clock::time_point> first;
  if (std::ranges::any_of(running_, [](const auto& running) { return !running.ended(); }))
    first = memory_looked_ + kLookAtMemory;
  for (const auto& running : running_) {
    for (const auto& deadline : {running.drained_by, running.killed_at}) {
      if (deadline && (!first || *deadline < *first)) first = deadline;
    }
  }
  return first;
}

void Programs::at_deadlines(Clock::time_point now) {
  if (now - memory_looked_ >= kLookAtMemory) {
    memory_looked_ = now;
    memory_.look(now);
  }
  for (auto& running : running_) {
    if (running.killed_at && *running.killed_at <= now) {
      running.program->signal_group(SIGKILL);
      running.killed_at.reset();
    }
    if (!running.drained_by || *running.drained_by > now) continue;
    // What it wrote itself is in its pipes still, where nobody took what came before.
    const std::lock_guard lock(mutex_);
    if (waiting_ >= kMostWaiting) running.drained_by = now + kDrain;
  }
  for (auto& running : running_) {
    if (running.drained_by && *running.drained_by <= now) finish(running);
  }
}

}  // namespace troupe::launch
