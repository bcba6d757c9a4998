#include "node/guard/guardian.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include "node/guard/guardian_process.hpp"

namespace troupe::node {
namespace {

constexpr int kPipeBytes = 1 << 20;    // 65,536 records: more than there can be processes
constexpr int kFullPipeWaitMs = 1000;  // a guardian that reads nothing for so long is stopped or gone

[[noreturn]] void cannot_start(const char* what) {
  throw Error(
      Failure{.kind = Failure::Kind::Unknown,
              .message = fmt::format("cannot start the node's guardian process: {}: {}", what, std::strerror(errno))});
}

}  // namespace

Guardian::Guardian(const std::string& cookie, const std::string& cgroup) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) cannot_start("pipe");
  os::UniqueFd read_end(ends[0]);
  pipe_.reset(ends[1]);
  ::fcntl(pipe_.get(), F_SETPIPE_SZ, kPipeBytes);
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  // A Ctrl-C may come before the child ignores it; so it is held back until then.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = ::fork();
  if (pid_ != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) cannot_start("fork");
  if (pid_ == 0) {
    pipe_.reset();
    run_guardian(read_end.get(), cookie, cgroup);
  }
}

void Guardian::add(pid_t group) { tell(GuardianRecord::Add, group, 0); }
void Guardian::remove(pid_t group) { tell(GuardianRecord::Remove, group, 0); }
void Guardian::sweep(std::uint64_t process, std::int32_t cgroup) { tell(GuardianRecord::Sweep, cgroup, process); }

void Guardian::tell(std::int32_t what, pid_t group, std::uint64_t process) {
  if (!pipe_) return;
  const GuardianRecord record{what, group, process};
  if (::write(pipe_.get(), &record, sizeof record) >= 0 || errno != EAGAIN) return;
  pollfd full{pipe_.get(), POLLOUT, 0};
  if (::poll(&full, 1, kFullPipeWaitMs) == 1) (void)!::write(pipe_.get(), &record, sizeof record);
}

}  // namespace troupe::node
