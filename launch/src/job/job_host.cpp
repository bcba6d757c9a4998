#include "job/job_host.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "config/token.hpp"
#include "host/limits.hpp"
#include "os/unique_fd.hpp"
#include "plan/clock.hpp"
#include "plan/environment.hpp"
#include "session/process.hpp"
#include "session/queries/node_token.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

constexpr std::chrono::milliseconds kLookAtPrograms{200};
constexpr std::chrono::milliseconds kLookAtLeft{10};
constexpr std::chrono::seconds kTokenLimit{5};
constexpr std::chrono::seconds kLeftEndLimit{10};  // for killed processes to be gone

/// Of a run, also where machines share the folder of their user.
std::string unique_name() {
  std::random_device random;
  return fmt::format("job-{:08x}{:08x}", random(), random());
}

std::string token_file(const LiveFolder& scratch) { return scratch.path() + "/token"; }

/// A file that is new, and that its user alone may read. Throws Refused.
void write_private(const std::string& file, const std::string& content) {
  const os::UniqueFd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const auto written = out ? ::write(out.get(), content.data(), content.size()) : -1;
  if (written == static_cast<ssize_t>(content.size())) return;
  refuse(fmt::format("'{}' cannot be written: {}", file, std::strerror(errno)));
}

}  // namespace

JobHost::JobHost(JobOrder order, const std::string& archive) {
  take_file_limit_as_error();
  info_.command = command_of(order);
  info_.submitted = order.submitted;
  info_.started = now_in_seconds();
  auto directory = order.directory;
  if (!order.workdir.empty()) {
    folder_ = receive_folder(order.workdir, archive, unique_name());
    directory = folder_->path();
  }
  keep_token(order);
  programs_ = std::make_unique<Programs>(
      std::vector<ProgramSpec>{{order.arguments, environment_of(order), directory}});
  // Who asks next is told so.
  const auto pids = programs_->pids();
  if (!pids.empty()) program_ = pids.front();
  if (pids.empty()) take(programs_->next(kLookAtPrograms));
  follower_ = std::thread([this] { follow(); });
}

JobHost::~JobHost() {
  leaving_ = true;
  follower_.join();
}

/// A program that cannot join the cluster may not want to.
void JobHost::keep_token(const JobOrder& order) {
  const auto grant = config::parse_token(order.token_grant);
  if (!grant) return;
  try {
    const auto token = runtime::ask_node_for_token(actor_name(order.name), *grant, kTokenLimit);
    scratch_ = make_scratch();
    write_private(token_file(*scratch_), config::format_token(token) + "\n");
  } catch (const Error& error) {
    scratch_.reset();
    log_.write(
        fmt::format("troupe: this job's program can join the cluster only with a token of its own "
                    "(--env TROUPE_TOKEN_FILE=FILE): {}\n",
                    error.what()));
  }
}

Variables JobHost::environment_of(const JobOrder& order) {
  auto environment = with_live_output(merged(environment_for_programs(), order.environment));
  Variables of_the_cluster{{"TROUPE_ADDRESS", order.address}};
  if (scratch_) of_the_cluster.emplace_back("TROUPE_TOKEN_FILE", token_file(*scratch_));
  return merged(merged(std::move(environment), of_the_cluster), order.variables);
}

void JobHost::follow() {
  auto next_look = Clock::now();
  for (bool over = false; !over && !leaving_;) {
    const auto news = programs_->next(kLookAtPrograms);
    take(news);
    over = news.over;
    if (over || Clock::now() < next_look) continue;
    next_look = Clock::now() + kLookAtPrograms;
    if (stopped_by()) {
      left_.ask_to_end(programs_->pids());
    } else {
      left_.reap(programs_->pids());
    }
  }
  const bool all_ended = end_left();
  scratch_.reset();
  // What could not be killed may use them still.
  if (all_ended && !leaving_) runtime::Process::current().return_resources();
  note_over();
  // A disk that was full as the job ended may have room later.
  while (!leaving_ && !log_.tell_of_loss()) std::this_thread::sleep_for(kLookAtPrograms);
}

/// The head knows it before anybody else does: who has seen the end sees it also without the node.
void JobHost::note_over() {
  const std::lock_guard lock(mutex_);
  info_.lost_bytes = log_.lost_bytes();
  info_.why_lost = log_.why_lost();
  if (!leaving_) runtime::Process::current().tell_end(text_of_end(info_));
  info_.is_over = true;
}

void JobHost::take(const HostNews& news) {
  for (const auto& written : news.written) log_.write(written.text);
  log_.tell_of_loss();
  const std::lock_guard lock(mutex_);
  info_.lost_bytes = log_.lost_bytes();
  info_.why_lost = log_.why_lost();
  for (const auto& end : news.ends) {
    info_.exit_code = end.exit_code;
    info_.signal = end.signal;
    info_.not_started = end.not_started;
    info_.was_stopped = end.was_told_to;
    info_.ended = end.at;
  }
}

/// A process that was left may need its grace as the program did, to write what it has.
bool JobHost::end_left() {
  while (!leaving_) {
    const auto until = stopped_by();
    if (!until || Clock::now() >= *until || left_.ask_to_end({}) == 0) break;
    std::this_thread::sleep_for(kLookAtLeft);
  }
  const auto killed = LeftProcesses::kill_all(kLeftEndLimit, program_);
  if (!stopped_by() && !leaving_) tell_of_left(killed.outside);
  if (killed.running == 0) return true;
  log_.write(fmt::format("troupe: {} processes of this job have not ended {} s after SIGKILL\n",
                         killed.running, kLeftEndLimit.count()));
  return false;
}

/// Who expects them to go on would look for their failure elsewhere.
void JobHost::tell_of_left(std::size_t processes) {
  if (processes == 0) return;
  {
    const std::lock_guard lock(mutex_);
    info_.left_processes = processes;
  }
  log_.write(fmt::format("troupe: the job's program has ended; {}: a job ends with its program\n",
                         what_was_left(info())));
}

std::optional<JobHost::Clock::time_point> JobHost::stopped_by() const {
  const std::lock_guard lock(mutex_);
  return stopped_by_;
}

JobInfo JobHost::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

void JobHost::stop(std::uint32_t grace_ms) {
  const std::chrono::milliseconds grace(grace_ms);
  {
    const std::lock_guard lock(mutex_);
    const auto by = Clock::now() + grace;
    stopped_by_ = stopped_by_ ? std::min(*stopped_by_, by) : by;
  }
  programs_->stop(grace);
}

}  // namespace troupe::launch
