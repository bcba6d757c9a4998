#include "test_program.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <thread>

#include <dlfcn.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <csignal>

#include "built.hpp"
#include "node/guard/guardian.hpp"
#include "node/node.hpp"
#include "node/spawn/zygote.hpp"
#include "transport/connection.hpp"

namespace troupe::node::test {
namespace {

std::string start_sleeper(bool by_exec) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    // What it inherits must not keep the sockets and pipes of a test open.
    for (int fd = 0; fd < 64; ++fd) ::close(fd);
    if (by_exec) ::execl("/bin/sleep", "sleep", "300", nullptr);
    for (;;) ::pause();
  }
  return std::to_string(pid);
}

std::string start_daemon() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const pid_t between = ::fork();
  if (between == 0) {
    ::setsid();
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      for (int fd = 0; fd < 64; ++fd) ::close(fd);
      ::execle("/bin/sleep", "sleep", "300", nullptr, static_cast<char**>(nullptr));
    }
    (void)!::write(ends[1], &daemon, sizeof daemon);
    ::_exit(0);
  }
  ::waitpid(between, nullptr, 0);
  pid_t daemon = 0;
  (void)!::read(ends[0], &daemon, sizeof daemon);
  ::close(ends[0]);
  ::close(ends[1]);
  return std::to_string(daemon);
}

void serve_raw(int link) {
  std::string line;
  for (char c; ::read(link, &c, 1) == 1;) {
    if (c != '\n') {
      line += c;
      continue;
    }
    const auto answer = perform(line) + "\n";
    line.clear();
    if (::send(link, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
  }
}

void send_ready(transport::Connection& link, wire::WorkerConfig::Reader config) {
  transport::Outgoing message;
  auto ready = message.root().initProcessReady();
  ready.setProcess(config.getProcess());
  ready.setPid(static_cast<std::uint32_t>(::getpid()));
  auto address = ready.initAddress();
  address.setProcess(config.getProcess());
  address.setNode(config.getNode());
  address.setHost(config.getHost());
  link.send(message);
}

void send_given_up(transport::Connection& link) {
  transport::Outgoing message;
  message.root().initProcessExited().initFailure().setMessage("no room\nfor it");
  link.send(message);
}

void serve_worker(int fd, bool can_start) {
  asio::io_context loop;
  auto link = transport::Connection::make(
      transport::Socket(loop, asio::generic::stream_protocol(AF_UNIX, 0), fd));
  link->start(
      [&](wire::Message::Reader message) {
        if (message.isWorkerConfig()) {
          can_start ? send_ready(*link, message.getWorkerConfig()) : send_given_up(*link);
        }
        if (!message.isHeadNotice() || !message.getHeadNotice().isRefused()) return;
        transport::Outgoing out;
        auto ask = out.root().initHeadRequest();
        ask.setId(message.getHeadNotice().getId());
        ask.initActorFind().setName(perform(message.getHeadNotice().getRefused().getMessage()));
        link->send(out);
      },
      [](const std::string&) { ::_exit(0); });
  loop.run();
}

int boot_descriptor(const std::string& boot) {
  return std::atoi(boot.c_str() + boot.find(':') + 1);
}

int serve_node(const std::string& port) {
  auto guardian = run_under_guardian();
  asio::io_context loop;
  NodeOptions options;
  options.guardian = guardian.lifeline.release();
  options.guardian_described = guardian.described;
  options.head.host = "127.0.0.1";
  options.head.port = static_cast<std::uint16_t>(std::stoi(port));
  options.token.fill(7);
  options.name = "separate";
  Node node(loop, options);
  int code = 0;
  node.start([](runtime::NodeId) {},
             [&](std::string, bool failed) {
               code = failed ? 1 : 0;
               loop.stop();
             });
  loop.run();
  return code;
}

}  // namespace

std::string self_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::string perform(const std::string& command) {
  std::istringstream words(command);
  std::string verb, rest;
  words >> verb >> rest;
  if (verb == "pid") return std::to_string(::getpid());
  if (verb == "parent") return std::to_string(::getppid());
  if (verb == "group") return std::to_string(::getpgrp());
  if (verb == "cwd") return std::filesystem::current_path();
  if (verb == "env") {
    const char* value = std::getenv(rest.c_str());
    return value == nullptr ? "(not set)" : value;
  }
  if (verb == "print") {
    std::cout << rest << std::endl;
    return "printed";
  }
  if (verb == "fill") return std::to_string(std::string(std::stoul(rest), 'x').size());
  if (verb == "exit") ::_exit(std::stoi(rest));
  if (verb == "signal") ::kill(::getpid(), std::stoi(rest));
  if (verb == "sleeper") return start_sleeper(true);
  if (verb == "orphan") return start_sleeper(false);
  if (verb == "daemon") return start_daemon();
  return "unknown command";
}

int program_main(const std::vector<std::string>& arguments) {
  const std::string what = arguments.size() > 1 ? arguments[1] : "";
  if (what == kNodeArgument) return serve_node(arguments.at(2));
  if (what == "exit-early") {
    std::cerr << "\nno data here\n";
    return 3;
  }
  if (what == "hang-early") {
    for (;;) ::pause();
  }
  std::thread thread;
  if (what == "threads") {
    thread = std::thread([] {
      ::prctl(PR_SET_NAME, "early-bird");
      for (;;) ::pause();
    });
  }
  if (what.starts_with("cuda")) {
    auto* library = ::dlopen(TROUPE_FAKE_CUDA.c_str(), RTLD_NOW);
    if (library == nullptr) return 4;
    const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
    if (what == "cuda-initialized") init(0);
  }
  const std::string boot = std::getenv(kBootVariable);
  ::unsetenv(kBootVariable);
  int link = boot_descriptor(boot);
  if (boot.starts_with("zygote:")) link = serve_zygote(link);
  if (what == "abort") {
    std::cerr << "a first line\nno such\tdevice" << std::endl;
    std::abort();
  }
  if (what == "never-ready") {
    std::cerr << "is there" << std::endl;
    for (;;) ::pause();
  }
  what == "worker" || what == "gives-up" ? serve_worker(link, what == "worker") : serve_raw(link);
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace troupe::node::test
