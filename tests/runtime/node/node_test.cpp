#include "node/node.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "fake_head.hpp"
#include "guard.hpp"
#include "memory_cgroup.hpp"
#include "node/guard/reaper.hpp"
#include "node/spawn/sibling.hpp"
#include "node/spawn/spawn.hpp"
#include "node/spawn/zygote_wire.hpp"
#include "os/machine.hpp"
#include "os/unique_fd.hpp"
#include "test_program.hpp"
#include "waiting.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;
using test::FakeHead;
using test::run_until;
using troupe::test::kGuard;

Program program_that(const std::string& behaviour) {
  auto program = describe_program(0, nullptr);
  program.arguments = {"the-program", behaviour};
  program.directory = std::filesystem::temp_directory_path();
  return program;
}

/// The same as a driver on another machine describes it.
Program shipped_program_that(const std::string& behaviour) {
  auto program = program_that(behaviour);
  program.machine = "elsewhere";
  program.directory = "/not/here";
  return program;
}

bool exists(pid_t pid) { return !test::stat_of(pid).state.empty(); }

int zombies() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto stat = test::stat_of(std::atoi(entry.path().filename().c_str()));
    if (stat.parent == ::getpid() && stat.state == "Z") ++count;
  }
  return count;
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// What this process, as a node, logs.
class StderrTo {
 public:
  explicit StderrTo(const std::filesystem::path& file) : before_(::dup(STDERR_FILENO)) {
    const os::UniqueFd to(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    REQUIRE(::dup2(to.get(), STDERR_FILENO) == STDERR_FILENO);
  }
  ~StderrTo() { ::dup2(before_.get(), STDERR_FILENO); }
  StderrTo(const StderrTo&) = delete;
  StderrTo& operator=(const StderrTo&) = delete;

 private:
  os::UniqueFd before_;
};

struct Cluster {
  test::TemporaryDirectory directory;
  asio::io_context loop;
  FakeHead head{loop};
  NodeOptions options;
  std::unique_ptr<Node> node;
  std::optional<std::uint32_t> number;
  std::optional<std::pair<std::string, bool>> stopped;

  Cluster() {
    options.head.host = "127.0.0.1";
    options.head.port = head.port();
    options.token = FakeHead::token();
    options.name = "host-a";
    options.gpus = 0;
    options.cache_directory = directory.path / "cache";
    options.heartbeat = 50ms;
  }

  void join() {
    node = std::make_unique<Node>(loop, options);
    node->start([this](runtime::NodeId is) { number = is.value(); },
                [this](std::string why, bool failed) { stopped.emplace(std::move(why), failed); });
    run_until(loop, "the node to join or to stop", [&] { return number || stopped; });
  }

  pid_t start(std::uint64_t process, std::uint64_t job,
              const std::vector<std::uint32_t>& gpus = {}) {
    head.start_process(process, job, gpus);
    run_until(loop, "a process to be ready",
              [&] { return head.ready.contains(process) || head.exited.contains(process); });
    if (head.exited.contains(process)) FAIL(head.exited[process].message);
    return head.ready[process];
  }

  Failure fate(std::uint64_t process) {
    run_until(loop, "a process to end", [&] { return head.exited.contains(process); });
    return head.exited[process];
  }

  std::string ask(std::uint64_t process, const std::string& command) {
    static std::uint64_t id = 100;
    head.command(process, ++id, command);
    run_until(loop, "an answer", [&] { return head.answers.contains(id); });
    return head.answers[id];
  }

  void stop() {
    node->stop("the test is over");
    run_until(loop, "the node to stop", [&] { return stopped.has_value(); });
  }
};

TEST_CASE("a node tells the head what it has and learns its number", "[node][join]") {
  Cluster cluster;
  cluster.options.cpus = 3;
  cluster.options.gpus = 2;
  cluster.options.resources = {{"license", 4}};
  cluster.options.labels = {{"zone", "b"}};
  cluster.join();
  REQUIRE(cluster.number == 1);
  const auto& joined = cluster.head.joined.at(0);
  CHECK(joined.name == "host-a");
  CHECK(joined.host == "127.0.0.1");
  CHECK(joined.machine == os::machine_id());
  CHECK(joined.resources.at("cpu") == 3);
  CHECK(joined.resources.at("license") == 4);
  CHECK(joined.resources.at("memory") > 0);
  CHECK(joined.labels.at("zone") == "b");
  CHECK(joined.gpus == 2);
  run_until(cluster.loop, "heartbeats", [&] { return cluster.head.beats >= 3; });
  cluster.stop();
  CHECK(cluster.stopped->first == "the test is over");
  CHECK(!cluster.stopped->second);
}

TEST_CASE("a node that is refused stops with the reason", "[node][join]") {
  Cluster cluster;
  cluster.options.token.fill(8);
  cluster.join();
  REQUIRE(cluster.stopped);
  CHECK(cluster.stopped->second);
  CHECK_THAT(cluster.stopped->first, Catch::Contains("token"));
}

TEST_CASE("a node whose host is no address of this machine is refused before it joins",
          "[node][join]") {
  Cluster cluster;
  const auto refused = [&](const std::string& host, const std::string& why) {
    cluster.options.host = host;
    CHECK_THROWS_WITH(Node(cluster.loop, cluster.options),
                      Catch::Contains("'" + host + "' (--node-host)") && Catch::Contains(why));
  };
  refused("192.0.2.1", "192.0.2.1 is no address of this machine");
  refused("no-such-host.invalid", "");
  refused("0.0.0.0", "every address");
  refused("::", "every address");
  CHECK(cluster.head.joined.empty());
  cluster.options.host = "127.0.0.1";
  cluster.join();
  CHECK(cluster.head.joined.at(0).host == "127.0.0.1");
  cluster.stop();
}

TEST_CASE("a node that is given a label of the head's is refused before it joins",
          "[node][join][labels]") {
  Cluster cluster;
  cluster.options.labels = {{"zone", "b"}, {"troupe.node", "7"}};
  CHECK_THROWS_WITH(
      Node(cluster.loop, cluster.options),
      Catch::StartsWith("a node cannot offer the label 'troupe.node': the head itself gives") &&
          Catch::EndsWith("choose another name"));
  CHECK(cluster.head.joined.empty());
  cluster.options.labels = {{"troupe", "a"}, {"troupes.node", "b"}};
  cluster.join();
  CHECK(cluster.head.joined.at(0).labels ==
        std::map<std::string, std::string>{{"troupe", "a"}, {"troupes.node", "b"}});
  cluster.stop();
}

TEST_CASE("a worker process starts, is asked through its node, and its exit is reported once",
          "[node][process]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  const pid_t pid = cluster.start(7, 5, {1, 3});
  CHECK(cluster.ask(7, "pid") == std::to_string(pid));
  CHECK(cluster.ask(7, "parent") == std::to_string(::getpid()));
  CHECK(cluster.ask(7, "env CUDA_VISIBLE_DEVICES") == "1,3");
  cluster.start(8, 5);
  CHECK(cluster.ask(8, "env CUDA_VISIBLE_DEVICES").empty());

  cluster.head.command(7, 1, "exit 6");
  const auto failure = cluster.fate(7);
  CHECK(failure.kind == Failure::Kind::ProcessDied);
  CHECK(failure.exit_code == 6);
  CHECK(failure.signal == 0);
  CHECK(failure.where == "node host-a");
  CHECK(failure.message == "process 7 (pid " + std::to_string(pid) + ") ended with exit code 6");
  CHECK(!cluster.head.exited.contains(8));
  cluster.stop();
  const auto other = cluster.fate(8);
  INFO(other.message);
  CHECK(other.exit_code == -1);  // it was lost with its node, and did not fail by itself
  CHECK_THAT(other.message, Catch::Contains("was ended: its node stops"));
}

TEST_CASE("a worker process that is killed is reported with its signal", "[node][process]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  const pid_t pid = cluster.start(7, 5);
  ::kill(pid, SIGKILL);
  const auto failure = cluster.fate(7);
  CHECK(failure.signal == SIGKILL);
  CHECK_THAT(failure.message, Catch::Contains("was killed by signal 9 (Killed)"));
  cluster.stop();
}

TEST_CASE("a worker process that the kernel killed for lack of memory is reported so",
          "[node][process][memory]") {
  const test::MemoryCgroup limited(64 << 20);
  if (!limited) {
    WARN("skipped: no memory cgroup (version 1) can be made here");
    return;
  }
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(1, program_that("worker"));
  const auto pid = cluster.start(4, 1);
  REQUIRE(limited.take(pid));
  cluster.head.command(4, 1, "fill " + std::to_string(256 << 20));
  const auto fate = cluster.fate(4);
  CHECK(fate.signal == SIGKILL);
  CHECK_THAT(fate.message,
             Catch::Contains("killed by signal 9") && Catch::Contains("out of memory: the kernel"));

  cluster.start(5, 1);
  ::kill(cluster.head.ready[5], SIGKILL);
  CHECK_THAT(cluster.fate(5).message, !Catch::Contains("memory"));
  cluster.stop();
}

TEST_CASE("nothing is left of a zygote that is killed between its fork and its report",
          "[node][zygote]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  os::UniqueFd mine(ends[0]), its(ends[1]);
  const pid_t zygote = ::fork();
  if (zygote == 0) {
    mine.reset();
    send_packet(its.get(), encode({ZygotePacket::Kind::Ready, ::getpid(), {}, {}}), -1, 0);
    if (!receive_packet(its.get(), 0).packet) ::_exit(1);
    if (fork_sibling() == 0) ::_exit(0);
    ::kill(::getpid(), SIGKILL);
  }
  its.reset();
  Cluster cluster;
  cluster.options.zygote = mine.release();
  cluster.options.zygote_pid = zygote;
  cluster.join();
  cluster.head.start_job(1, program_that("worker"));
  cluster.start(4, 1);  // by another zygote
  run_until(cluster.loop, "no zombie to be left", [] { return zombies() == 0; });
  cluster.stop();
}

TEST_CASE(
    "a stopped process ends at once, with the reason, and so do the processes that it started",
    "[node][process]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  const pid_t pid = cluster.start(7, 5);
  const pid_t sleeper = std::stoi(cluster.ask(7, "sleeper"));
  const pid_t orphan = std::stoi(cluster.ask(7, "orphan"));
  cluster.start(8, 5);
  const pid_t neighbour = std::stoi(cluster.ask(8, "sleeper"));
  cluster.head.stop_process(7, "its lease was returned");
  const auto failure = cluster.fate(7);
  CHECK(failure.message ==
        "process 7 (pid " + std::to_string(pid) + ") was ended: its lease was returned");
  CHECK(test::gone_within(sleeper, kGuard));
  CHECK(test::gone_within(orphan, kGuard));
  CHECK(test::runs(neighbour));
  cluster.stop();
  CHECK(test::gone_within(neighbour, 0ms));
}

TEST_CASE("the end of a job ends its processes and no others", "[node][process]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  cluster.head.start_job(6, program_that("worker"));
  cluster.start(7, 5);
  cluster.start(8, 6);
  cluster.head.start_process(9, 5);  // maybe in the middle of its fork
  cluster.head.end_job(5);
  cluster.fate(7);
  cluster.fate(9);
  CHECK(!cluster.head.exited.contains(8));
  cluster.head.start_process(10, 5);
  CHECK_THAT(cluster.fate(10).message, Catch::Contains("job 5 is not known"));
  cluster.stop();
}

TEST_CASE("a program that cannot start fails the process with what the program did",
          "[node][process]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("exit-early"));
  cluster.head.start_process(7, 5);
  const auto failure = cluster.fate(7);
  CHECK(failure.kind == Failure::Kind::Program);
  CHECK(failure.exit_code == 3);
  cluster.stop();
}

TEST_CASE("what ends a worker process before it is ready is in its failure, from its log",
          "[node][process]") {
  Cluster cluster;
  const auto logs = cluster.directory.path / "logs";
  cluster.options.log_directory = logs;
  std::filesystem::create_directory(logs);
  const auto log = logs / "job-5-process-7.log";
  std::ofstream(log) << "of an earlier node\n";
  cluster.join();
  cluster.head.start_job(5, program_that("abort"));
  cluster.head.start_process(7, 5);
  const auto failure = cluster.fate(7);
  CHECK(failure.signal == SIGABRT);
  CHECK_THAT(failure.message,
             Catch::Contains("was killed by signal 6") &&
                 Catch::EndsWith("; its log, " + log.string() +
                                 ", ends with: 'a first line / no such\\x09device'"));
  cluster.stop();
}

TEST_CASE("what ends a program before troupe::init is in the failure of its starts, from its log",
          "[node][process]") {
  Cluster cluster;
  cluster.options.log_directory = cluster.directory.path / "logs";
  cluster.join();
  cluster.head.start_job(5, program_that("exit-early"));
  cluster.head.start_process(7, 5);
  CHECK_THAT(cluster.fate(7).message,
             Catch::Contains("ended with exit code 3 before it called troupe::init; its log, ") &&
                 Catch::EndsWith("job-5-zygote.log, ends with: 'no data here'"));
  cluster.stop();
}

TEST_CASE("a worker process that says why it cannot start is ended, and its words are reported",
          "[node][process]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("gives-up"));
  cluster.head.start_process(7, 5);
  const auto failure = cluster.fate(7);
  CHECK(failure.kind == Failure::Kind::Program);
  CHECK(failure.signal == 0);
  CHECK_THAT(failure.message,
             Catch::Contains("process 7") && Catch::EndsWith("could not start: no room for it"));
  CHECK(!cluster.head.ready.contains(7));
  cluster.stop();
}

TEST_CASE("a program with threads is executed for each process, and ends are told apart",
          "[node][process]") {
  Cluster cluster;
  cluster.options.program_start = 2s;
  cluster.join();
  cluster.head.start_job(5, program_that("threads"));
  cluster.head.start_process(7, 5);
  run_until(
      cluster.loop, "a process that speaks no Cap'n Proto to be ended",
      [&] { return cluster.head.exited.contains(7); }, kGuard);
  CHECK(cluster.head.exited[7].kind == Failure::Kind::Program);
  cluster.stop();
}

TEST_CASE("what was being started as its node stops is not logged as a failed start",
          "[node][stop]") {
  for (const std::string program : {"never-ready", "hang-early"}) {
    INFO(program);
    Cluster cluster;
    const auto logs = cluster.directory.path / "logs";
    cluster.options.log_directory = logs;
    cluster.join();
    cluster.head.start_job(5, program_that(program));
    cluster.head.start_process(7, 5);
    if (program == "never-ready") {
      run_until(cluster.loop, "the process to print",
                [&] { return text_of(logs / "job-5-process-7.log") == "is there\n"; });
    }
    const auto beats = cluster.head.beats;  // by the next ones the node has its process id, too
    run_until(cluster.loop, "heartbeats", [&] { return cluster.head.beats >= beats + 3; });
    const auto said = cluster.directory.path / "said";
    {
      const StderrTo file(said);
      cluster.stop();
    }
    CHECK(text_of(said) == "");
  }
}

TEST_CASE("a node stops when the head says so, is gone or falls silent", "[node][stop]") {
  Cluster cluster;
  cluster.options.head_silence = 400ms;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  const pid_t pid = cluster.start(7, 5);
  SECTION("shut down") {
    cluster.head.shut_down("troupe stop");
    run_until(cluster.loop, "the node to stop", [&] { return cluster.stopped.has_value(); });
    CHECK(cluster.stopped->first == "the cluster was stopped: troupe stop");
    CHECK(!cluster.stopped->second);
  }
  SECTION("connection lost") {
    cluster.head.vanish();
    run_until(cluster.loop, "the node to stop", [&] { return cluster.stopped.has_value(); });
    CHECK(cluster.stopped->second);
    CHECK_THAT(cluster.stopped->first, Catch::Contains("is gone"));
  }
  SECTION("silence") {
    cluster.head.echoes = false;
    run_until(cluster.loop, "the node to stop", [&] { return cluster.stopped.has_value(); });
    CHECK(cluster.stopped->second);
    CHECK_THAT(cluster.stopped->first, Catch::Contains("silent for more than 0.4 s"));
  }
  CHECK(!test::runs(pid));
}

TEST_CASE("a process that its node ends as it stops is lost with the node, and was not killed",
          "[node][stop]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  cluster.start(7, 5);
  cluster.node->stop("terminated");
  const auto failure = cluster.fate(7);
  CHECK(failure.kind == Failure::Kind::ProcessDied);
  CHECK(failure.signal == 0);
  CHECK(failure.exit_code == -1);
  CHECK_THAT(failure.message, Catch::StartsWith("process 7 (pid ") &&
                                  Catch::EndsWith(") was ended: its node stops: terminated"));
  run_until(cluster.loop, "the node to stop", [&] { return cluster.stopped.has_value(); });
}

TEST_CASE("the output of a worker process goes to a file of its own", "[node][process]") {
  Cluster cluster;
  cluster.options.log_directory = cluster.directory.path / "logs";
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  cluster.start(7, 5);
  CHECK(cluster.ask(7, "print hello") == "printed");
  std::ifstream log(cluster.directory.path / "logs" / "job-5-process-7.log");
  std::string line;
  std::getline(log, line);
  CHECK(line == "hello");
  cluster.head.command(7, 1, "exit 6");
  CHECK_THAT(cluster.fate(7).message,
             Catch::EndsWith("ended with exit code 6; its log, " +
                             (cluster.directory.path / "logs" / "job-5-process-7.log").string() +
                             ", ends with: 'hello'"));
  cluster.stop();
}

TEST_CASE("a program of another machine is fetched once, checked and run", "[node][program]") {
  Cluster cluster;
  ProgramImage image;
  cluster.head.image = &image;
  cluster.join();
  cluster.head.start_job(5, shipped_program_that("worker"));
  cluster.start(7, 5);
  const auto cached = cluster.directory.path / "cache" / to_hex(image.sha256());
  CHECK(std::filesystem::exists(cached));
  CHECK((std::filesystem::status(cached).permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec));
  const auto chunks = cluster.head.chunks;
  CHECK(chunks > 0);

  cluster.head.start_job(6, shipped_program_that("worker"));
  cluster.start(8, 6);
  CHECK(cluster.head.chunks == chunks);
  cluster.stop();
}

TEST_CASE("a fetched program that this machine cannot run is refused with what it lacks",
          "[node][program]") {
  Cluster cluster;
  const auto patched = cluster.directory.path / "patched";
  std::string lacks;
  SECTION("a shared library") {
    test::write_with_missing_library(patched);
    lacks = "lacks shared libraries that it needs: libnotthere.so";
  }
  SECTION("its machine") {
    test::write_patched(patched,
                        std::string("\x7f"
                                    "ELF\x02",
                                    5),
                        std::string("\x7f"
                                    "ELF\x01",
                                    5));
    lacks = "(32 bits), this node is";
  }
  SECTION("everything") {
    std::ofstream(patched) << "#!/bin/sh\nexit 0\n";
    lacks = "it is not an ELF executable";
  }
  ProgramImage image(patched);
  cluster.head.image = &image;
  cluster.join();
  auto program = shipped_program_that("worker");
  program.size = std::filesystem::file_size(patched);
  cluster.head.start_job(5, program);
  cluster.head.start_process(7, 5);
  const auto failure = cluster.fate(7);
  CHECK(failure.kind == Failure::Kind::Program);
  CHECK_THAT(failure.message, Catch::Contains(lacks));
  cluster.stop();
}

TEST_CASE("a program that arrives damaged is refused and not kept", "[node][program]") {
  Cluster cluster;
  ProgramImage image;
  cluster.head.image = &image;
  cluster.head.spoil = [](wire::ProgramChunk::Builder chunk) {
    if (chunk.getData().size() > 100 && chunk.getOffset() == 0) chunk.getData()[50] ^= 1;
  };
  cluster.join();
  cluster.head.start_job(5, shipped_program_that("worker"));
  cluster.head.start_process(7, 5);
  const auto failure = cluster.fate(7);
  CHECK(failure.kind == Failure::Kind::Program);
  CHECK_THAT(failure.message, Catch::Contains("damaged"));
  CHECK(std::filesystem::is_empty(cluster.directory.path / "cache"));
  cluster.stop();
}

TEST_CASE("a program whose driver cannot be reached fails its starts within a second or so",
          "[node][program]") {
  Cluster cluster;
  cluster.join();
  transport::Outgoing out;
  auto started = out.root().initJobStarted();
  started.setJob(5);
  write_program(started.initProgram(), shipped_program_that("worker"));
  started.initDriver().setHost("127.0.0.1");
  started.getDriver().setPort(1);
  started.getDriver().setProcess(900);
  cluster.head.send(out);
  cluster.head.start_process(7, 5);
  CHECK_THAT(cluster.fate(7).message,
             Catch::Contains("cannot fetch the program from its driver at 127.0.0.1:1: nothing "
                             "listens on 127.0.0.1:1: the process that listened there has ended"));
  cluster.stop();
}

TEST_CASE(
    "what a worker process has left ends with it, whatever its session and environment, and "
    "nothing of others does",
    "[node][process][guardian]") {
  Cluster cluster;
  cluster.join();
  cluster.head.start_job(5, program_that("worker"));
  const pid_t pid = cluster.start(7, 5);
  const pid_t left = std::stoi(cluster.ask(7, "daemon"));
  const pid_t forked = std::stoi(cluster.ask(7, "orphan"));
  cluster.start(8, 5);
  const pid_t neighbour = std::stoi(cluster.ask(8, "daemon"));
  CHECK(test::stat_of(left).parent == ::getpid());
  CHECK(test::runs(left));  // as long as its worker process
  ::kill(pid, SIGKILL);
  cluster.fate(7);
  run_until(cluster.loop, "what it left to be reaped",
            [&] { return !exists(left) && !exists(forked); });
  CHECK(test::runs(neighbour));
  cluster.stop();
  CHECK_FALSE(exists(neighbour));
}

namespace {

/// A node under its guardian, as processes of their own, with one worker process and what that has
/// started.
struct Separate {
  Cluster cluster;
  pid_t guardian = 0;
  pid_t node = 0;
  std::vector<pid_t> started;

  Separate() {
    Spawn what;
    what.path = test::self_path();
    what.arguments = {"node", test::kNodeArgument, std::to_string(cluster.head.port())};
    what.environment = environment_with({}, {});
    guardian = std::get<pid_t>(spawn(what));
    run_until(cluster.loop, "the node to join", [&] { return !cluster.head.joined.empty(); });
    cluster.head.start_job(5, program_that("worker"));
    started = {cluster.start(7, 5)};
    node = test::stat_of(started.front()).parent;
    for (const auto* what_else : {"sleeper", "orphan", "daemon"}) {
      started.push_back(std::stoi(cluster.ask(7, what_else)));
    }
    for (const auto pid : started) CHECK(test::runs(pid));
  }

  int end_of_guardian() const {
    REQUIRE(test::gone_within(guardian, kGuard));
    return wait_for_end(guardian);
  }
  bool all_gone() const {
    return std::ranges::all_of(started, [](pid_t pid) { return test::gone_within(pid, kGuard); });
  }
};

}  // namespace

TEST_CASE(
    "SIGKILL of a node ends its worker processes and what they started, and its guardian ends as "
    "the node did",
    "[node][guardian]") {
  Separate separate;
  REQUIRE(test::stat_of(separate.node).parent == separate.guardian);
  ::kill(separate.node, SIGKILL);
  const int status = separate.end_of_guardian();
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(std::ranges::none_of(separate.started, test::runs));
}

TEST_CASE("SIGKILL of a guardian ends the node, its worker processes and what they started",
          "[node][guardian]") {
  Separate separate;
  ::kill(separate.guardian, SIGKILL);
  wait_for_end(separate.guardian);
  run_until(separate.cluster.loop, "the node to end", [&] { return !test::runs(separate.node); });
  CHECK(separate.all_gone());
}

}  // namespace
}  // namespace troupe::node
