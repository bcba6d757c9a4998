#include "node/output/output_tail.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "os/files/file_size.hpp"

namespace troupe::node {
namespace {

constexpr std::uint64_t kPieceBytes = 16 << 10;
constexpr std::size_t kEventBytes = 16 << 10;
constexpr std::uint32_t kWatchedEvents =
    IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR;

std::string name_of(const std::string& file) { return file.substr(file.rfind('/') + 1); }
std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/')); }

}  // namespace

struct OutputTail::Followed {
  Source source;
  std::uint64_t offset = 0;
  pid_t pid = 0;
  os::UniqueFd file;  // opened with its first bytes
  LineCutter cutter;
  OutputBudget budget;
  bool is_changed = false;  // shortened: places say nothing of what ran
  bool was_there = false;
  bool is_gone = false;
};

OutputTail::OutputTail(boost::asio::io_context& loop, OutputLimits limits, Callbacks callbacks)
    : loop_(loop),
      limits_(limits),
      callbacks_(std::move(callbacks)),
      budget_(limits.node_bytes),
      events_(loop),
      timer_(loop) {}

OutputTail::~OutputTail() = default;

void OutputTail::stop() {
  alive_.reset();
  events_.close();
  timer_.cancel();
  followed_.clear();
}

void OutputTail::add(ProcessId process, Source source) {
  if (!alive_) return;
  watch(source.file);
  by_name_[name_of(source.file)] = process;
  const auto found = os::file_size(source.file);
  const auto size = found.value_or(0);
  followed_[process] =
      std::make_unique<Followed>(Followed{.source = std::move(source),
                                          .offset = size,
                                          .file = {},
                                          .cutter = LineCutter(size),
                                          .budget = OutputBudget(limits_.process_bytes),
                                          .was_there = found.has_value()});
  // Where no event can come, somebody has to look.
  if (!events_.is_open()) gather(limits_.retry);
}

void OutputTail::started(ProcessId process, pid_t pid) {
  if (const auto found = followed_.find(process); found != followed_.end())
    found->second->pid = pid;
}

// ---- when to look -------------------------------------------------------------------------------

void OutputTail::watch(const std::string& file) {
  const auto folder = folder_of(file);
  const auto is_this = [&](const auto& watched) { return watched.second == folder; };
  if (std::ranges::any_of(folders_, is_this)) return;
  if (!events_.is_open()) {
    const int fd = looks_by_time_ ? -1 : ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) return;
    events_.assign(fd);
    wait_for_growth();
  }
  const int watch = ::inotify_add_watch(events_.native_handle(), folder.c_str(), kWatchedEvents);
  if (watch >= 0) {
    folders_[watch] = folder;
  } else {
    looks_by_time_ = true;
    events_.close();
  }
}

/// One event for the first bytes; those of the next moments are read at once.
void OutputTail::wait_for_growth() {
  events_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                       if (error || alive.expired()) return;
                       gather(limits_.batch);
                     });
}

void OutputTail::gather(std::chrono::milliseconds time) {
  if (std::exchange(gathering_, true)) return;
  timer_.expires_after(time);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired()) return;
    gathering_ = false;
    if (events_.is_open()) {
      read_events();
      wait_for_growth();
    }
    send_grown();
  });
}

void OutputTail::read_events() {
  std::set<std::string> lost;  // folders
  read_events(lost);
  if (lost.empty()) return;
  for (const auto& [process, followed] : followed_) {
    const auto folder = folder_of(followed->source.file);
    if (!lost.contains(folder)) continue;
    grown_.insert(process);
    if (::access(folder.c_str(), F_OK) == 0) watch(followed->source.file);  // it is there again
  }
}

void OutputTail::read_events(std::set<std::string>& lost) {
  alignas(inotify_event) std::array<char, kEventBytes> buffer;
  for (;;) {
    const auto got = ::read(events_.native_handle(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof *event + event->len;
      if ((event->mask & (IN_IGNORED | IN_MOVE_SELF)) != 0) {
        // Removed or renamed, with all files in it: another one has that name next.
        if ((event->mask & IN_MOVE_SELF) != 0)
          ::inotify_rm_watch(events_.native_handle(), event->wd);
        if (const auto gone = folders_.extract(event->wd)) lost.insert(gone.mapped());
      } else if ((event->mask & IN_Q_OVERFLOW) != 0) {
        for (const auto& [process, followed] : followed_) grown_.insert(process);
      } else if (event->len > 0) {
        const auto found = by_name_.find(event->name);
        if (found == by_name_.end()) continue;
        if ((event->mask & IN_CREATE) != 0) followed_.at(found->second)->was_there = true;
        grown_.insert(found->second);
      }
    }
  }
}

// ---- what is sent -------------------------------------------------------------------------------

void OutputTail::send_grown() {
  if (!events_.is_open()) {
    for (const auto& [process, followed] : followed_) grown_.insert(process);
  }
  if (!callbacks_.is_held_up()) send(std::exchange(grown_, {}), Unfinished::Kept);
  if (!grown_.empty() || (!events_.is_open() && !followed_.empty())) gather(limits_.retry);
}

void OutputTail::flush(JobId job) {
  const auto others = std::exchange(budget_, OutputBudget(limits_.node_bytes));
  std::set<ProcessId> processes;
  for (const auto& [process, followed] : followed_) {
    if (followed->source.job != job) continue;
    read_last_words(*followed);
    processes.insert(process);
  }
  send(processes, Unfinished::Sent);
  budget_ = others;
}

void OutputTail::finish(ProcessId process) {
  auto found = followed_.find(process);
  if (found == followed_.end()) return;
  auto& followed = *found->second;
  const auto others = std::exchange(budget_, OutputBudget(limits_.node_bytes));
  read_last_words(followed);
  followed.cutter.cut();
  send({process}, Unfinished::Sent);
  budget_ = others;
  grown_.erase(process);
  by_name_.erase(name_of(followed.source.file));
  followed_.erase(process);
}

/// They count more than what was read before them in this second. What is too much is left out now:
/// nobody comes back for it.
void OutputTail::read_last_words(Followed& followed) {
  followed.budget = OutputBudget(limits_.process_bytes);
  read(followed);
  if (const auto unread = look(followed); unread > 0) {
    followed.offset += unread;
    followed.cutter.skip(unread);
  }
}

std::uint64_t OutputTail::look(Followed& followed) {
  const auto say = [&](const char* what) {
    followed.cutter.say(fmt::format("[troupe: {} {}]", followed.source.file, what));
    followed.is_changed = true;
  };
  if (followed.is_gone) return 0;
  const auto size = os::file_size(followed.source.file);
  if (!size) {
    followed.is_gone = followed.was_there;  // its process makes it as it starts
    if (followed.is_gone) say("was removed or renamed: what this process prints is shown no more");
    return 0;
  }
  followed.was_there = true;
  if (*size < followed.offset) {
    say("was shortened: its lines have no function from here on");
    followed.offset = 0;
    followed.file.reset();
  }
  return *size - followed.offset;
}

bool OutputTail::read(Followed& followed) {
  const auto now = Clock::now();
  for (;;) {
    const auto unread = look(followed);
    auto plan = plan_read(unread, followed.budget.left(now), limits_.process_bytes);
    plan.read = std::min(plan.read, budget_.left(now));
    if (plan.skip > 0) {
      followed.offset += plan.skip;
      followed.cutter.skip(plan.skip);
    }
    if (unread == 0 || plan.read == 0) return unread == 0;
    const auto before = followed.offset;
    const auto lines = followed.cutter.waiting();
    read_bytes(followed, std::min(plan.read, kPieceBytes));
    if (followed.offset == before) return true;  // it cannot be read
    const auto cost = followed.offset - before + kLineBytes * (followed.cutter.waiting() - lines);
    followed.budget.use(cost, now);
    budget_.use(cost, now);
  }
}

void OutputTail::read_bytes(Followed& followed, std::uint64_t bytes) {
  if (!followed.file)
    followed.file =
        os::UniqueFd(::open(followed.source.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!followed.file) return;
  std::array<char, kPieceBytes> buffer;
  const auto got = ::pread(followed.file.get(), buffer.data(), std::min(bytes, kPieceBytes),
                           static_cast<off_t>(followed.offset));
  if (got <= 0) return;
  followed.cutter.append({buffer.data(), static_cast<std::size_t>(got)});
  followed.offset += static_cast<std::uint64_t>(got);
}

/// Once the file has been read: who printed that is known by then.
std::vector<LabelledLines> OutputTail::take_lines(Followed& followed) {
  auto lines = followed.cutter.take();
  if (lines.empty()) return {};
  const auto& labels = followed.source.labels;
  std::vector<runtime::LabelHistory::Span> spans;
  if (labels && !lines.begins.empty() && !followed.is_changed) spans = labels(lines.begins.front());
  return label_lines(std::move(lines), spans);
}

void OutputTail::send(const std::set<ProcessId>& processes, Unfinished unfinished) {
  struct Entry {
    ProcessId process;
    pid_t pid;
    std::string log;
    LabelledLines lines;
  };
  std::map<JobId, std::vector<Entry>> batch;
  for (const auto process : processes) {
    const auto found = followed_.find(process);
    if (found == followed_.end()) continue;
    auto& followed = *found->second;
    const bool has_all = read(followed);
    if (!has_all) grown_.insert(process);
    if (has_all && unfinished == Unfinished::Sent) followed.cutter.cut();
    for (auto& lines : take_lines(followed))
      batch[followed.source.job].push_back(
          {process, followed.pid, followed.source.file, std::move(lines)});
  }
  for (const auto& [job, entries] : batch) {
    transport::Outgoing message;
    auto output = message.root().initWorkerOutput();
    output.setJob(job.value());
    auto list = output.initProcesses(static_cast<unsigned>(entries.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      const auto& entry = entries[i];
      list[i].setProcess(entry.process.value());
      list[i].setPid(static_cast<std::uint32_t>(entry.pid));
      list[i].setLabel(entry.lines.label);
      list[i].setLines(capnp::Data::Reader(
          reinterpret_cast<const capnp::byte*>(entry.lines.text.data()), entry.lines.text.size()));
      list[i].setLeftOut(entry.lines.left_out);
      if (entry.lines.left_out > 0) list[i].setLog(entry.log);
    }
    callbacks_.to_head(message);
  }
}

}  // namespace troupe::node
