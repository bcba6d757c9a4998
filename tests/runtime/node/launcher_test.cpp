#include "node/spawn/launcher.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <sys/socket.h>
#include <sys/wait.h>
#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "guard.hpp"
#include "node/guard/mark.hpp"
#include "test_program.hpp"
#include "waiting.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;
using test::run_until;
using troupe::test::kGuard;

#if defined(__SANITIZE_THREAD__)
constexpr bool kHasOneThread = false;  // ThreadSanitizer keeps a thread of its own
#else
constexpr bool kHasOneThread = true;
#endif

/// One started process: its result and a link on which it obeys lines of text.
struct Started {
  std::optional<LaunchResult> result;
  os::UniqueFd link;
  std::optional<int> status;

  pid_t pid() const { return std::get<Launched>(*result).pid; }
  const Failure& failure() const { return std::get<Failure>(*result); }

  std::string tell(const std::string& command) {
    const auto line = command + "\n";
    if (::send(link.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return "(gone)";
    timeval limit{kGuard.count(), 0};
    ::setsockopt(link.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string answer;
    for (char c = '\0';;) {
      const auto got = ::recv(link.get(), &c, 1, 0);
      if (got < 0 && errno == EINTR) continue;  // a SIGCHLD
      if (got != 1 || c == '\n') break;
      answer += c;
    }
    return answer;
  }
};

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && test::stat_of(pid).parent == parent) out.push_back(pid);
  }
  return out;
}

struct Fixture {
  asio::io_context loop;
  Reaper reaper{loop};
  std::shared_ptr<Launcher> launcher;
  ProcessId last;

  ~Fixture() {
    if (launcher) launcher->close();
    reaper.kill_all();
  }

  void make(const std::string& behaviour, std::chrono::milliseconds start_limit = kGuard) {
    LauncherOptions options;
    options.job = 1_job;
    options.start_limit = start_limit;
    options.program = describe_program(0, nullptr);
    options.program.arguments = {"the-program", behaviour};
    options.program.directory = std::filesystem::temp_directory_path();
    launcher = std::make_shared<Launcher>(loop, reaper, nullptr, options);
  }

  std::shared_ptr<Started> begin() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    auto started = std::make_shared<Started>();  // shared with what waits for the start and the end
    started->link.reset(ends[0]);
    LaunchRequest request;
    request.process = ++last;
    request.environment = {"CUDA_VISIBLE_DEVICES=3,5"};
    request.link.reset(ends[1]);
    launcher->start(std::move(request), [this, at = started](LaunchResult result) {
      at->result = std::move(result);
      if (auto* launched = std::get_if<Launched>(&*at->result)) {
        reaper.watch(launched->pid, Reaper::Group::Killed,
                     [at](int status) { at->status = status; });
      }
    });
    return started;
  }

  std::shared_ptr<Started> start() {
    auto started = begin();
    run_until(loop, "an answer to the start", [&] { return started->result.has_value(); });
    if (const auto* failure = std::get_if<Failure>(&*started->result)) INFO(failure->message);
    return started;
  }
};

TEST_CASE("a worker process is a child of the node and leads a group of its own",
          "[node][zygote]") {
  Fixture node;
  node.make("raw");
  auto worker = node.start();
  REQUIRE(std::holds_alternative<Launched>(*worker->result));
  CHECK(worker->tell("pid") == std::to_string(worker->pid()));
  CHECK(worker->tell("parent") == std::to_string(::getpid()));
  CHECK(worker->tell("group") == std::to_string(worker->pid()));
  // A sanitizer's own thread comes and goes: where there may be one, either way is right.
  if (kHasOneThread) CHECK_FALSE(std::get<Launched>(*worker->result).by_exec);
}

TEST_CASE("a worker process sees its GPUs and its driver's directory, and has a mark",
          "[node][zygote]") {
  Fixture node;
  node.make("raw");
  auto first = node.start();
  auto second = node.start();
  CHECK(second->tell("env CUDA_VISIBLE_DEVICES") == "3,5");
  CHECK(second->tell("env TROUPE_BOOT") == "(not set)");
  CHECK(std::filesystem::equivalent(second->tell("cwd"), std::filesystem::temp_directory_path()));
  first->tell("pid");  // it has begun
  CHECK(mark_of_child(first->pid()) == 1);
  CHECK(mark_of_child(second->pid()) == 2);
}

TEST_CASE("the exit code and the signal of a worker process reach the node", "[node][zygote]") {
  Fixture node;
  node.make("raw");
  auto first = node.start();
  auto second = node.start();
  first->tell("exit 7");
  second->tell("signal 9");
  run_until(node.loop, "both to be reaped", [&] { return first->status && second->status; });
  CHECK(WIFEXITED(*first->status));
  CHECK(WEXITSTATUS(*first->status) == 7);
  CHECK(WIFSIGNALED(*second->status));
  CHECK(WTERMSIG(*second->status) == SIGKILL);
}

TEST_CASE("many worker processes asked for at once are all forked from one zygote",
          "[node][zygote]") {
  Fixture node;
  node.make("raw");
  std::vector<std::shared_ptr<Started>> workers;
  for (int i = 0; i < 40; ++i) workers.push_back(node.begin());
  for (auto& worker : workers) {
    run_until(node.loop, "all starts", [&] { return worker->result.has_value(); });
    CHECK(worker->tell("parent") == std::to_string(::getpid()));
  }
}

TEST_CASE("a launcher that closes in the midst of starts knows every process that was made",
          "[node][zygote]") {
  if (!kHasOneThread) return;
  const auto others = children_of(::getpid()).size();  // that another test has left
  Fixture node;
  node.make("raw");
  node.start();
  std::vector<std::shared_ptr<Started>> workers;
  for (int i = 0; i < 40; ++i) workers.push_back(node.begin());
  run_until(node.loop, "a first start", [&] { return workers.front()->result.has_value(); });
  node.launcher->close();
  run_until(node.loop, "the zygote to end", [&] { return node.launcher->zygote() == 0; });
  std::size_t launched = 0;
  for (auto& worker : workers) {
    REQUIRE(worker->result);
    if (std::holds_alternative<Launched>(*worker->result)) ++launched;
  }
  CHECK(launched >= 1);
  CHECK(children_of(::getpid()).size() == others + launched + 1);  // with the one before
}

TEST_CASE("a dead zygote leaves its worker processes alive and a new one serves",
          "[node][zygote]") {
  if (!kHasOneThread) return;
  Fixture node;
  node.make("raw");
  auto before = node.start();
  const pid_t zygote = node.launcher->zygote();
  REQUIRE(zygote > 0);
  ::kill(zygote, SIGKILL);
  run_until(node.loop, "the zygote to be reaped",
            [&] { return node.launcher->zygote() != zygote; });
  CHECK(before->tell("pid") == std::to_string(before->pid()));

  auto after = node.start();
  CHECK(after->tell("pid") == std::to_string(after->pid()));
  CHECK(node.launcher->zygote() > 0);
  CHECK(node.launcher->zygote() != zygote);
  CHECK(before->tell("pid") == std::to_string(before->pid()));
}

TEST_CASE("a start that meets a dying zygote is told so or served, and never waits for ever",
          "[node][zygote]") {
  if (!kHasOneThread) return;
  Fixture node;
  node.make("raw");
  node.start();
  ::kill(node.launcher->zygote(), SIGKILL);
  auto worker = node.start();  // the node does not know yet
  REQUIRE(!std::holds_alternative<Failure>(*worker->result));
  if (std::holds_alternative<LaunchLost>(*worker->result)) worker = node.start();
  CHECK(worker->tell("pid") == std::to_string(worker->pid()));
}

TEST_CASE("a program with threads before troupe::init is executed for each worker process",
          "[node][zygote]") {
  Fixture node;
  node.make("threads");
  auto first = node.start();
  auto second = node.start();
  for (auto* worker : {first.get(), second.get()}) {
    CHECK(std::get<Launched>(*worker->result).by_exec);
    CHECK(worker->tell("parent") == std::to_string(::getpid()));
    CHECK(worker->tell("env CUDA_VISIBLE_DEVICES") == "3,5");
  }
  CHECK(mark_of_child(second->pid()) == 2);
}

TEST_CASE(
    "a program that has initialized CUDA before troupe::init is executed for each worker process",
    "[node][zygote]") {
  if (!kHasOneThread) return;
  Fixture node;
  const bool initialized = GENERATE(false, true);
  node.make(initialized ? "cuda-initialized" : "cuda-loaded");
  auto worker = node.start();
  CHECK(std::get<Launched>(*worker->result).by_exec == initialized);
  CHECK(worker->tell("env CUDA_VISIBLE_DEVICES") == "3,5");
}

TEST_CASE("a program that ends before troupe::init fails its starts with the exit code",
          "[node][zygote]") {
  Fixture node;
  node.make("exit-early");
  auto worker = node.start();
  REQUIRE(std::holds_alternative<Failure>(*worker->result));
  CHECK(worker->failure().kind == Failure::Kind::Program);
  CHECK(worker->failure().exit_code == 3);
  CHECK_THAT(worker->failure().message,
             Catch::Contains("ended with exit code 3 before it called troupe::init"));
}

TEST_CASE("a program that never calls troupe::init is ended and named", "[node][zygote]") {
  Fixture node;
  node.make("hang-early", 200ms);
  auto worker = node.start();
  REQUIRE(std::holds_alternative<Failure>(*worker->result));
  CHECK_THAT(worker->failure().message, Catch::Contains("did not call troupe::init within 200 ms"));
  CHECK(node.launcher->zygote() == 0);
}

TEST_CASE("a zygote that is killed before it is ready is started again, a few times",
          "[node][zygote]") {
  Fixture node;
  node.make("hang-early");
  const auto worker = node.begin();
  pid_t last = 0;
  int killed = 0;
  for (; killed < 10 && !worker->result; ++killed) {
    run_until(node.loop, "a zygote, or an answer",
              [&] { return worker->result || node.launcher->zygote() != last; });
    last = node.launcher->zygote();
    if (worker->result || last == 0) break;
    REQUIRE(::kill(last, SIGKILL) == 0);
    run_until(node.loop, "its end",
              [&] { return worker->result || node.launcher->zygote() != last; });
  }
  CHECK(killed == 4);
  REQUIRE(worker->result);
  CHECK_THAT(worker->failure().message, Catch::Contains("before it called troupe::init"));
  CHECK(worker->failure().signal == SIGKILL);
}

TEST_CASE("a program that was rebuilt since the driver started is refused", "[node][program]") {
  test::TemporaryDirectory directory;
  const auto copy = directory.path / "program";
  std::filesystem::copy_file(test::self_path(), copy);
  Fixture node;
  LauncherOptions options;
  options.program = describe_program(0, nullptr);
  options.program.path = copy;  // another inode than the driver's
  options.program.arguments = {"the-program", "raw"};
  node.launcher = std::make_shared<Launcher>(node.loop, node.reaper, nullptr, options);
  auto worker = node.start();
  REQUIRE(std::holds_alternative<Failure>(*worker->result));
  CHECK_THAT(worker->failure().message, Catch::Contains("was rebuilt since the driver started"));
}

TEST_CASE("worker processes end with the node's thread", "[node][zygote]") {
  // A process in between plays the node: it starts a worker process, says its pid and is killed.
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t between = ::fork();
  if (between == 0) {
    Fixture node;
    node.make("raw");
    auto worker = node.start();
    const auto pids = std::array{worker->pid(), node.launcher->zygote()};
    (void)!::write(ends[1], pids.data(), sizeof pids);
    for (;;) ::pause();
  }
  std::array<pid_t, 2> pids{};
  REQUIRE(::read(ends[0], pids.data(), sizeof pids) == sizeof pids);
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(test::runs(pids[0]));
  ::kill(between, SIGKILL);
  ::waitpid(between, nullptr, 0);
  CHECK(test::gone_within(pids[0], kGuard));
  if (pids[1] > 0) CHECK(test::gone_within(pids[1], kGuard));
}

}  // namespace
}  // namespace troupe::node
