#include "node/spawn/launcher.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/wait.h>
#include <csignal>

#include <fmt/format.h>

#include "log/log.hpp"
#include "node/failures.hpp"
#include "node/program/elf.hpp"
#include "node/program/program_check.hpp"
#include "node/spawn/child.hpp"
#include "node/spawn/never_began.hpp"
#include "node/spawn/spawn.hpp"
#include "node/spawn/zygote.hpp"

namespace troupe::node {
namespace {

constexpr auto kJobEnded = "its job has ended";
// Of a zygote that is to end, for the forks it was asked for.
constexpr std::chrono::seconds kAnswerLimit(1);
// Exit code of the dynamic loader, and of a shell, that cannot start a program.
constexpr int kLoaderFailed = 127;
constexpr int kMostKilledStarts = 4;

}  // namespace

Launcher::Launcher(asio::io_context& loop, Reaper& reaper, std::shared_ptr<ProgramCache> cache,
                   LauncherOptions options)
    : loop_(loop),
      reaper_(reaper),
      cache_(std::move(cache)),
      options_(std::move(options)),
      start_timer_(loop) {}

void Launcher::adopt(os::UniqueFd control, pid_t zygote) {
  watch_zygote(std::move(control), zygote);
}

void Launcher::start(LaunchRequest request, OnLaunched done) {
  if (closed_) return done(failure_of(Failure::Kind::Program, kJobEnded));
  pending_.push_back({std::move(request), std::move(done)});
  advance();
}

void Launcher::rest() {
  if (closed_ || !pending_.empty() || zygote_pid_ == 0) return;
  zygote_rests_ = true;
  end_zygote();
}

void Launcher::close() {
  closed_ = true;
  start_timer_.cancel();
  end_zygote();
  fail_pending(failure_of(Failure::Kind::Program, kJobEnded));
}

/// A process that it forks just now is a child of this one, to be watched and to be ended: it must
/// say which that is. So it may answer first, and its socket stays open until it is reaped.
void Launcher::end_zygote() {
  if (zygote_pid_ == 0) return;
  if (!zygote_ || !zygote_->is_ready() || !zygote_->owes_answers()) {
    ::kill(zygote_pid_, SIGKILL);
    return;
  }
  zygote_->finish();
  start_timer_.expires_after(kAnswerLimit);
  start_timer_.async_wait(
      [weak = weak_from_this(), pid = zygote_pid_](boost::system::error_code error) {
        if (auto self = weak.lock(); !error && self && self->zygote_pid_ == pid)
          ::kill(pid, SIGKILL);
      });
}

void Launcher::advance() {
  if (closed_ || pending_.empty()) return;
  if (zygote_ && !by_exec_) {
    if (!zygote_->is_ready()) return;
    for (auto pending = std::exchange(pending_, {}); auto& one : pending) fork(std::move(one));
  } else if (state_ == State::Unknown) {
    resolve();
  } else if (state_ == State::Found && by_exec_) {
    for (auto pending = std::exchange(pending_, {}); auto& one : pending) execute(std::move(one));
  } else if (state_ == State::Found && zygote_pid_ == 0) {
    start_zygote();
  }
}

void Launcher::fail_pending(const Failure& failure) {
  for (auto pending = std::exchange(pending_, {}); auto& one : pending) one.done(failure);
}

// ---- the program --------------------------------------------------------------------------------

void Launcher::resolve() {
  const auto& program = options_.program;
  if (program.machine == program_machine_id()) {
    if (auto why = why_changed(program); !why.empty())
      return fail_pending(failure_of(Failure::Kind::Program, why));
    return found(program.path, {}, true);
  }
  if (!cache_) {
    return fail_pending(failure_of(Failure::Kind::Program,
                                   "this node has no cache for programs of other machines"));
  }
  state_ = State::Resolving;
  auto fetch = options_.fetch;
  fetch.size = program.size;
  fetch.digest = program.sha256;
  fetch_program(loop_, cache_, std::move(fetch),
                [weak = weak_from_this()](std::variant<CachedProgram, Failure> result) {
                  auto self = weak.lock();
                  if (!self || self->closed_) return;
                  self->state_ = State::Unknown;
                  if (auto* failure = std::get_if<Failure>(&result))
                    return self->fail_pending(*failure);
                  auto& cached = std::get<CachedProgram>(result);
                  self->found(std::move(cached.path), std::move(cached.file), false);
                });
}

void Launcher::found(std::string path, os::UniqueFd file, bool in_place) {
  path_ = std::move(path);
  file_ = std::move(file);
  in_place_ = in_place;
  if (!in_place) return check_shipped();
  state_ = State::Found;
  advance();
}

void Launcher::check_shipped() {
  const auto elf = read_elf(file_.get());
  const auto* needs = std::get_if<ElfNeeds>(&elf);
  const auto why = needs != nullptr ? why_not_here(*needs) : std::get<NotElf>(elf).why;
  if (!why.empty()) {
    return fail_pending(failure_of(Failure::Kind::Program,
                                   fmt::format("cannot run {}: {}", options_.program.path, why)));
  }
  state_ = State::Resolving;
  find_missing_libraries(
      loop_, reaper_, path_, options_.check_limit, [weak = weak_from_this()](std::string missing) {
        auto self = weak.lock();
        if (!self || self->closed_) return;
        self->state_ = missing.empty() ? State::Found : State::Unknown;
        if (missing.empty()) return self->advance();
        self->fail_pending(
            failure_of(Failure::Kind::Program,
                       fmt::format("cannot run {}: this node lacks shared libraries that it needs: "
                                   "{}; install them here, or link them statically",
                                   self->options_.program.path, missing)));
      });
}

std::variant<pid_t, Failure> Launcher::run_program(const std::string& boot, int keep,
                                                   const std::string& log, std::uint64_t mark,
                                                   std::vector<std::string> environment) {
  environment.push_back(fmt::format("{}={}:{}", kBootVariable, boot, keep));
  Spawn what;
  what.program = file_.get();
  what.path = path_;
  what.arguments = options_.program.arguments;
  what.environment = environment_with(environment, {"TROUPE_TOKEN", "TROUPE_TOKEN_FILE"});
  what.directory = options_.program.directory;
  what.keep = {keep};
  what.log = log;
  what.mark = mark;
  // A shipped program may find its driver's directory here or not; one that is at home must.
  if (!in_place_ && ::access(what.directory.c_str(), X_OK) != 0) what.directory.clear();
  auto spawned = spawn(what);
  if (auto* pid = std::get_if<pid_t>(&spawned)) return *pid;
  return failure_of(Failure::Kind::Program,
                    "cannot start the program: " + std::get<SpawnFailed>(spawned).why);
}

// ---- the zygote ---------------------------------------------------------------------------------

void Launcher::start_zygote() {
  if (in_place_) {  // it may have been rebuilt since the last one
    if (auto why = why_changed(options_.program); !why.empty()) {
      return fail_pending(failure_of(Failure::Kind::Program, why));
    }
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_pending(
        failure_of(Failure::Kind::Program, fmt::format("socketpair: {}", std::strerror(errno))));
  }
  os::UniqueFd mine(ends[0]), its(ends[1]);
  zygote_log_ = LogTail(options_.log);
  auto started = run_program("zygote", its.get(), options_.log, 0, {});
  if (auto* failure = std::get_if<Failure>(&started)) return fail_pending(*failure);

  start_timed_out_ = false;
  watch_zygote(std::move(mine), std::get<pid_t>(started));
  start_timer_.expires_after(options_.start_limit);
  start_timer_.async_wait([weak = weak_from_this(),
                           pid = zygote_pid_](boost::system::error_code error) {
    auto self = weak.lock();
    if (error || !self || self->zygote_pid_ != pid || (self->zygote_ && self->zygote_->is_ready()))
      return;
    self->start_timed_out_ = true;
    kill_group(pid);
  });
}

void Launcher::watch_zygote(os::UniqueFd control, pid_t pid) {
  zygote_pid_ = pid;
  zygote_ = std::make_shared<ZygoteClient>(loop_, std::move(control));
  zygote_->start(
      [weak = weak_from_this()] {
        auto self = weak.lock();
        if (!self) return;
        self->start_timer_.cancel();
        self->killed_starts_ = 0;
        self->advance();
      },
      // Without its socket it is of no use, and how it ended is told when it is reaped.
      [weak = weak_from_this(), pid] {
        if (auto self = weak.lock(); self && self->zygote_pid_ == pid) ::kill(pid, SIGKILL);
      });
  reaper_.watch(pid, Reaper::Group::Left, [self = shared_from_this(), pid](int status) {
    self->on_zygote_ended(pid, status);
  });
}

void Launcher::on_zygote_ended(pid_t pid, int status) {
  if (zygote_pid_ != pid) return;
  zygote_pid_ = 0;
  start_timer_.cancel();
  // What it answered before it ended is read first; then whoever still waits for an answer is told
  // that there is none.
  const auto zygote = std::exchange(zygote_, nullptr);
  const bool was_ready = zygote && zygote->was_ready();
  if (zygote) zygote->drain();
  const bool has_rested = std::exchange(zygote_rests_, false);
  if (closed_ || by_exec_) return;
  if (has_rested) return advance();
  if (was_ready) {
    log::warn(
        fmt::format("the zygote of job {} (pid {}) {}; its worker processes live on, the next "
                    "start makes a new one",
                    options_.job, pid, describe_status(status)));
    return advance();
  }
  // By a person, or for lack of memory: that says nothing of the program.
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !start_timed_out_;
  if (killed && ++killed_starts_ < kMostKilledStarts) {
    log::warn(
        fmt::format("the program {} of job {} (pid {}) was killed before it was ready; it is "
                    "started again",
                    options_.program.path, options_.job, pid));
    return advance();
  }
  killed_starts_ = 0;
  auto failure = failure_of(Failure::Kind::Program, {});
  if (WIFSIGNALED(status)) failure.signal = WTERMSIG(status);
  if (WIFEXITED(status)) failure.exit_code = WEXITSTATUS(status);
  const auto who = "the program " + options_.program.path;
  failure.message =
      start_timed_out_
          ? fmt::format("{} {}", who, took_too_long(options_.program, options_.start_limit))
          : ended_before_init(options_.program, who, status);
  explain_start(std::move(failure), status);
}

void Launcher::explain_start(Failure failure, int status) {
  state_ = State::Unknown;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kLoaderFailed) {
    failure.message += zygote_log_.quote();
    return fail_pending(failure);
  }
  state_ = State::Resolving;
  find_missing_libraries(
      loop_, reaper_, path_, options_.check_limit,
      [weak = weak_from_this(), failure = std::move(failure)](std::string missing) mutable {
        auto self = weak.lock();
        if (!self || self->closed_) return;
        self->state_ = State::Unknown;
        failure.message += missing.empty()
                               ? self->zygote_log_.quote()
                               : "; shared libraries that it needs are missing: " + missing;
        self->fail_pending(failure);
      });
}

void Launcher::fork(Pending pending) {
  ZygotePacket packet{ZygotePacket::Kind::Fork, ::getpid(), pending.request.process, {}};
  packet.texts = {pending.request.log};
  packet.texts.insert(packet.texts.end(), pending.request.environment.begin(),
                      pending.request.environment.end());
  auto link = std::move(pending.request.link);
  auto shared = std::make_shared<Pending>(std::move(pending));
  auto announced = std::make_shared<Reaper::Announcement>(reaper_.announce());
  zygote_->fork(
      packet, std::move(link),
      [weak = weak_from_this(), shared, announced](const ZygotePacket* answer, os::UniqueFd link) {
        if (auto self = weak.lock()) self->on_answer(std::move(*shared), answer, std::move(link));
      });
}

void Launcher::on_answer(Pending pending, const ZygotePacket* answer, os::UniqueFd link) {
  if (answer == nullptr && closed_)
    return pending.done(failure_of(Failure::Kind::Program, kJobEnded));
  if (answer == nullptr) return pending.done(LaunchLost{});
  switch (answer->kind) {
    case ZygotePacket::Kind::Forked:
      return pending.done(Launched{answer->pid, false});
    case ZygotePacket::Kind::CannotFork:
      pending.request.link = std::move(link);
      pending_.push_back(std::move(pending));
      return fall_back(answer->texts.empty() ? "a reason" : answer->texts.front());
    default:
      break;
  }
  const auto why = answer->texts.empty() ? std::string("no reason given") : answer->texts.front();
  pending.done(
      failure_of(Failure::Kind::ProcessDied, "the zygote could not make a worker process: " + why));
}

// ---- without a zygote ---------------------------------------------------------------------------

void Launcher::fall_back(const std::string& what_it_has) {
  if (!std::exchange(by_exec_, true)) {
    log::warn(
        fmt::format("job {}: {}", options_.job, executed_anew(options_.program, what_it_has)));
    if (zygote_pid_ > 0) ::kill(zygote_pid_, SIGKILL);
  }
  advance();
}

void Launcher::execute(Pending pending) {
  const auto& request = pending.request;
  auto started = run_program("worker", request.link.get(), request.log, request.process.value(),
                             request.environment);
  if (auto* failure = std::get_if<Failure>(&started)) return pending.done(*failure);
  pending.done(Launched{std::get<pid_t>(started), true});
}

}  // namespace troupe::node
