#include "session/output/output_printer.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <troupe/detail/terminal_picture.hpp>

#include "config/name.hpp"
#include "store/types.hpp"

namespace troupe::runtime {
namespace {

/// What a pipe that can be written takes at once.
constexpr std::size_t kPieceBytes = 4096;
constexpr std::chrono::milliseconds kLook{100};
constexpr std::size_t kLastLineBytes = 200;

std::string describe(wire::WorkerOutput::Reader output, wire::ProcessOutput::Reader process) {
  return fmt::format("process={} pid={} node={}", process.getProcess(), process.getPid(),
                     output.getNodeName().cStr());
}

/// "fib process=7 pid=4711 node=w1", where "fib" is known.
std::string join(std::string_view label, std::string_view from) {
  return fmt::format("{}{}{}", label, label.empty() ? "" : " ", from);
}

/// A line of several processes has no process in front, but their number.
std::string describe(const LineMerger::Merged& merged, bool names) {
  const auto& line = merged.line;
  if (!line.process) return fmt::format("troupe: {}\n", line.text);
  const auto count = merged.times > 1 ? fmt::format(" [{} times]", merged.times) : std::string();
  if (!names) return fmt::format("{}{}\n", line.text, count);
  const auto who = merged.processes > 1 ? join(fmt::format("{}", fmt::join(merged.labels, ", ")),
                                               fmt::format("processes={}", merged.processes))
                                        : join(line.label, line.from);
  return fmt::format("({}) {}{}\n", who, line.text, count);
}

std::string_view text_of(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

/// Signals are for the program's own threads; a terminal that is gone is seen by the write.
void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

OutputPrinter::~OutputPrinter() { finish(std::chrono::milliseconds(0)); }

void OutputPrinter::take(wire::WorkerOutput::Reader output) {
  const std::lock_guard lock(mutex_);
  if (finishing_) return;
  left_out_ += output.getLeftOut();
  for (const auto process : output.getProcesses()) {
    const std::string label = process.getLabel();
    const auto from = describe(output, process);
    if (const auto bytes = process.getLeftOut(); bytes > 0) {
      const auto command = is_private_
                               ? std::string()
                               : fmt::format(" (`troupe logs process {}`)", process.getProcess());
      push_notice(
          fmt::format("{} of what ({}) printed are left out here: it was too much in a "
                      "second; its log has all: {}{}",
                      store::format_bytes(bytes), join(label, from),
                      config::printable(std::string(process.getLog())), command));
    }
    auto text = text_of(process.getLines());
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      const auto line = text.substr(0, end);
      push({.text = std::string(line),
            .process = ProcessId(process.getProcess()),
            .label = label,
            .from = from});
      text.remove_prefix(end + 1);
      if (text.find('\n') == std::string_view::npos)
        note_last_line(ProcessId(process.getProcess()), line);
    }
  }
  start();
  changed_.notify_one();
}

void OutputPrinter::note_last_line(ProcessId process, std::string_view line) {
  last_lines_[process] = line.substr(0, kLastLineBytes);
  if (last_lines_.size() > kMostLastLines) last_lines_.erase(last_lines_.begin());
}

std::string OutputPrinter::last_line_of(ProcessId process) {
  const std::lock_guard lock(mutex_);
  const auto found = last_lines_.find(process);
  return found == last_lines_.end() ? std::string() : found->second;
}

/// Without a thread nothing is printed; the logs have it.
void OutputPrinter::start() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    waiting_.clear();
    waiting_bytes_ = 0;
  }
}

void OutputPrinter::push_notice(std::string text) {
  push({.text = std::move(text), .process = {}, .label = {}, .from = {}});
}

void OutputPrinter::push(OutputLine line) {
  const auto bytes = line.text.size() + line.label.size() + line.from.size();
  if (waiting_bytes_ + bytes > kMostWaiting) {
    left_out_ += bytes;
    return;
  }
  waiting_bytes_ += bytes;
  waiting_.push_back(std::move(line));
}

void OutputPrinter::finish(std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(finishing_, true)) finish_by_ = Clock::now() + patience;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void OutputPrinter::run() {
  block_signals();
  for (bool last = false; !last;) {
    std::deque<OutputLine> lines;
    std::uint64_t left_out = 0;
    {
      std::unique_lock lock(mutex_);
      const auto has_work = [this] { return finishing_ || !waiting_.empty() || left_out_ > 0; };
      if (const auto next = merger_.next()) {
        changed_.wait_until(lock, *next, has_work);
      } else {
        changed_.wait(lock, has_work);
      }
      lines.swap(waiting_);
      waiting_bytes_ = 0;
      left_out = std::exchange(left_out_, 0);
      last = finishing_;
    }
    if (left_out > 0) {
      print({{.line = {.text = fmt::format("{} of what worker processes printed are left out here: "
                                           "they were not read in time; the logs have all",
                                           store::format_bytes(left_out)),
                       .process = {},
                       .label = {},
                       .from = {}}}});
    }
    const auto now = Clock::now();
    std::vector<LineMerger::Merged> ready = merger_.due(now);
    for (auto& line : lines) {
      auto more = line.process ? merger_.take(std::move(line), now)
                               : std::vector<LineMerger::Merged>{{.line = std::move(line)}};
      std::ranges::move(more, std::back_inserter(ready));
    }
    if (last) std::ranges::move(merger_.rest(), std::back_inserter(ready));
    print(ready);
  }
}

/// As many whole lines at once as fit: what others print goes between them.
void OutputPrinter::print(const std::vector<LineMerger::Merged>& merged) {
  std::string text;
  for (const auto& one : merged) {
    const auto line = describe(one, names_);
    if (!text.empty() && text.size() + line.size() > kPieceBytes) write(std::exchange(text, {}));
    text += line;
  }
  write(text);
}

/// Whole lines.
void OutputPrinter::write(std::string_view lines) {
  if (lines.empty()) return;
  const auto picture = detail::TerminalPicture::of_process().lifted(descriptor_);
  put(picture.before);
  put(lines);
  put(picture.after);
}

void OutputPrinter::put(std::string_view text) {
  while (!text.empty() && !is_broken_) {
    if (!wait_until_writable()) {
      is_broken_ = true;
      return;
    }
    const auto wrote = ::write(descriptor_, text.data(), std::min(text.size(), kPieceBytes));
    if (wrote > 0) {
      text.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno != EINTR && errno != EAGAIN) {
      is_broken_ = true;
    }
  }
}

/// False: it is to finish, and its time is over.
bool OutputPrinter::wait_until_writable() {
  for (;;) {
    pollfd wait{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (::poll(&wait, 1, static_cast<int>(kLook.count())) > 0) return true;
    const std::lock_guard lock(mutex_);
    if (finishing_ && Clock::now() >= finish_by_) return false;
  }
}

}  // namespace troupe::runtime
