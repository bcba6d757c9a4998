#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "stopped.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A listener on loopback that says `greeting` to whoever connects (in a process of its own), as an
/// HTTP or SSH server would.
class OtherServer {
 public:
  explicit OtherServer(const std::string& greeting) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(listen(listener, 8) == 0);
    socklen_t size = sizeof any;
    getsockname(listener, reinterpret_cast<sockaddr*>(&any), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(any.sin_port));
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      for (;;) {
        const int peer = accept(listener, nullptr, nullptr);
        if (!greeting.empty()) (void)!write(peer, greeting.data(), greeting.size());
      }
    }
    close(listener);
  }
  ~OtherServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  const std::string& address() const { return address_; }

 private:
  std::string address_;
  pid_t pid_ = -1;
};

bool is_said_once(const std::string& output, const std::string& text) {
  const auto at = output.find(text);
  return at != std::string::npos && output.find(text, at + 1) == std::string::npos;
}

int connect_to(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return fd;
}

}  // namespace

TEST_CASE("a wrong token is refused on both sides, in one message each",
          "[cli][refusal][security]") {
  TestCluster cluster(0);
  auto environment = cluster.environment();
  environment.push_back("TROUPE_TOKEN=" + std::string(64, 'a'));
  environment.erase(environment.begin() + 1);
  const auto worker = run({TROUPE_PROGRAM, "worker", "--head", cluster.address()}, environment);
  CHECK(worker.exit_code == 1);
  CHECK_THAT(worker.output,
             Catch::Contains("the token differs") && Catch::Contains("is from TROUPE_TOKEN"));
  CHECK(is_said_once(worker.output, "the token differs"));
  cluster.head().wait_for_output("token differs");

  const auto driver =
      run({TROUPE_TEST_DRIVER, "task", "--address", cluster.address()}, environment);
  CHECK(driver.exit_code == 1);
  CHECK_THAT(driver.output,
             Catch::Contains("driver: Refused:") && Catch::Contains("is from TROUPE_TOKEN"));
  CHECK(is_said_once(driver.output, "is from TROUPE_TOKEN"));

  CHECK_THAT(run({TROUPE_PROGRAM, "status"}, environment).output,
             Catch::Contains("is from TROUPE_TOKEN"));
}

TEST_CASE("a port where nothing listens is named, with what to do", "[cli][refusal]") {
  TestCluster cluster(0);
  auto environment = cluster.environment();
  const auto driver = run({TROUPE_TEST_DRIVER, "task", "--address", "127.0.0.1:1"}, environment);
  CHECK(driver.exit_code == 1);
  CHECK_THAT(driver.output, Catch::Contains("driver: Disconnected:") &&
                                Catch::Contains("127.0.0.1:1") && Catch::Contains("troupe head"));
  CHECK_THAT(driver.output, !Catch::Contains("trying again"));
}

TEST_CASE("who has dialled the wrong head is told where this user's last one here is",
          "[cli][refusal]") {
  TestCluster own(0), other(0);
  const auto hint =
      "; the head that was last started on this machine, by this user, is at " + own.address();
  for (const auto& address : {std::string("127.0.0.1:1"), other.address(), own.address()}) {
    const bool is_own = address == own.address();
    // The own head refuses a driver with a token that is not its own, too.
    auto environment = own.environment();
    if (is_own) environment.at(1) = "TROUPE_TOKEN=" + std::string(64, 'a');
    for (const auto& words :
         {std::vector<std::string>{TROUPE_PROGRAM, "status", "--address", address},
          std::vector<std::string>{TROUPE_PROGRAM, "worker", "--head", address},
          std::vector<std::string>{TROUPE_PROGRAM, "run", "--address", address, "--", "true"},
          std::vector<std::string>{TROUPE_TEST_DRIVER, "task", "--address", address}}) {
      const auto finished = run(words, environment);
      INFO(words[0] << ' ' << words[1] << " at " << address << ": " << finished.output);
      CHECK(finished.exit_code != 0);
      CHECK(is_said_once(finished.output, hint) == !is_own);
    }
  }
}

TEST_CASE("a port that is not Troupe's is told apart", "[cli][refusal]") {
  TestCluster cluster(0);
  for (const std::string greeting :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1\r\n"}) {
    OtherServer server(greeting);
    const auto worker =
        run({TROUPE_PROGRAM, "worker", "--head", server.address()}, cluster.environment());
    CHECK(worker.exit_code == 1);
    CHECK_THAT(worker.output,
               Catch::Contains("does not speak Troupe") && Catch::Contains(server.address()));
    CHECK(is_said_once(worker.output, "does not speak Troupe"));
  }
}

TEST_CASE("a port that says nothing is named after 0.9 s, and given up after three times that",
          "[cli][refusal]") {
  TestCluster cluster(0);
  OtherServer server("");
  const std::vector<std::vector<std::string>> callers{
      {TROUPE_PROGRAM, "worker", "--head", server.address(), "--head-silence", "2.7"},
      {TROUPE_PROGRAM, "status", "--head", server.address()},
      {TROUPE_TEST_DRIVER, "task", "--address", server.address()},
  };
  for (const auto& arguments : callers) {
    const auto start = std::chrono::steady_clock::now();
    Child caller(arguments, cluster.environment());
    caller.wait_for_output("or it is too busy or stopped; trying again");
    CHECK(std::chrono::steady_clock::now() - start >= 900ms);
    const auto status = caller.wait();
    CHECK(std::chrono::steady_clock::now() - start >= 2700ms);
    INFO(caller.output());
    REQUIRE(status);
    CHECK(WEXITSTATUS(*status) == 1);
    CHECK_THAT(caller.output(),
               Catch::Contains(server.address() +
                               " accepted the connection but said nothing within 0.9 s") &&
                   Catch::Contains("no Troupe head (use the address that `troupe head` printed), "
                                   "or it is too busy or stopped (tried 3 times)"));
  }
}

TEST_CASE("a head that is too busy to answer within a second is joined all the same",
          "[cli][refusal]") {
  TestCluster cluster(1);
  const std::vector<std::vector<std::string>> callers{
      {TROUPE_PROGRAM, "worker", "--head", cluster.address(), "--name", "late"},
      {TROUPE_PROGRAM, "status", "--head", cluster.address()},
      {TROUPE_TEST_DRIVER, "task", "--address", cluster.address()},
  };
  const std::vector<std::string> done{"of the cluster at", "cluster ", "task "};
  for (std::size_t i = 0; i < callers.size(); ++i) {
    std::optional<Stopped> head(cluster.head().pid());
    Child caller(callers[i], cluster.environment());
    caller.wait_for_output("or it is too busy or stopped; trying again");
    if (i == 0) caller.wait_for_output("said nothing within 1.8 s");  // the fourth attempt
    head.reset();
    caller.wait_for_output(done[i]);
    if (i == 0) {
      caller.signal(SIGTERM);
      CHECK(caller.wait());
    }
  }
}

TEST_CASE("garbage on the port closes that connection, and the head lives", "[cli][refusal]") {
  TestCluster cluster(1);
  for (int i = 0; i < 20; ++i) {
    const int fd = connect_to(cluster.address());
    std::string garbage(4096, '\0');
    std::ifstream("/dev/urandom", std::ios::binary)
        .read(garbage.data(), static_cast<std::streamsize>(garbage.size()));
    (void)!send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    pollfd closed{.fd = fd, .events = POLLIN, .revents = 0};
    CHECK(poll(&closed, 1, std::chrono::milliseconds(kGuard).count()) == 1);
    close(fd);
  }
  CHECK(cluster.run_driver("task").exit_code == 0);
}

TEST_CASE("thousands of strangers leave a few lines in a head's log, and it goes on",
          "[cli][refusal]") {
  TestCluster cluster(0);
  std::vector<int> silent;
  for (int i = 0; i < 2'400; ++i) {
    const int fd = connect_to(cluster.address());
    if (i % 3 != 0) (void)!send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    i % 8 == 0 ? silent.push_back(fd) : static_cast<void>(close(fd));
  }
  // A command gives up a head that is too busy, as it may still be with them.
  CHECK(eventually([&] {
    return run({TROUPE_PROGRAM, "status"}, cluster.environment()).exit_code == 0;
  }));
  for (const int fd : silent) close(fd);
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  REQUIRE(cluster.head().wait());
  CHECK_THAT(cluster.head().output(), Catch::Contains("refused a connection"));
  CHECK(cluster.head().output().size() < 16 * 1024);
}

TEST_CASE("a second head on the same port or state is refused with the way out", "[cli][refusal]") {
  TestCluster cluster(0);
  const auto port = cluster.address().substr(cluster.address().rfind(':') + 1);
  const auto same_port = run({TROUPE_PROGRAM, "head", "--port", port}, cluster.environment());
  CHECK(same_port.exit_code == 1);
  CHECK_THAT(same_port.output,
             Catch::Contains(port) && Catch::Contains("in use") &&
                 Catch::Contains("what listens there is the head of cluster ") &&
                 Catch::Contains(" (pid " + std::to_string(cluster.head().pid()) + ")") &&
                 Catch::Contains("--address " + cluster.address()) &&
                 Catch::Contains("`troupe stop --head " + cluster.address() + "`"));
  const auto status = run({TROUPE_PROGRAM, "status"}, {"XDG_STATE_HOME=" + cluster.folder(),
                                                       "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  CHECK(status.exit_code == 0);  // its address is still there
  CHECK_FALSE(std::filesystem::exists(cluster.folder() + "/troupe/head-" + port));
  const auto same_state = run({TROUPE_PROGRAM, "head", "--port", "0"}, cluster.environment());
  CHECK(same_state.exit_code == 1);
  CHECK_THAT(same_state.output, Catch::Contains("another head"));
}

TEST_CASE("wrong arguments are exit code 2, a malformed address is 1 with an example",
          "[cli][refusal]") {
  CHECK(run({TROUPE_PROGRAM}).exit_code == 2);
  CHECK(run({TROUPE_PROGRAM, "head", "--port", "many"}).exit_code == 2);
  CHECK(run({TROUPE_PROGRAM, "head", "--port", "0", "--gpus", "-3"}).exit_code == 2);
  CHECK(run({TROUPE_PROGRAM, "head", "--port", "0", "--cpus", "-1"}).exit_code == 2);
  TemporaryFolder folder;
  for (const std::string port : {"70000", "-1"}) {
    const auto head = run({TROUPE_PROGRAM, "head", "--port", port});
    CHECK(head.exit_code == 2);
    CHECK_THAT(head.output, Catch::Contains("--port") && Catch::Contains("65535"));
  }
  const auto bad =
      run({TROUPE_PROGRAM, "status", "--head", "nowhere"}, {"XDG_STATE_HOME=" + folder.path()});
  CHECK(bad.exit_code == 1);
  CHECK_THAT(bad.output, Catch::Contains("HOST:PORT"));
}

TEST_CASE("an option's value that makes no sense is named before anything starts",
          "[cli][refusal]") {
  TestCluster cluster(0);
  const std::string file = cluster.folder() + "/a file";
  std::ofstream(file) << "no directory\n";
  struct Bad {
    std::string option, value, named;
  };
  const std::vector<Bad> all{
      {"--cpus", "0", "'0' is not a number above 0"},
      {"--cpus", "many", "'many' is not a number above 0"},
      {"--cpus", "0.00001", "'0.00001' rounds to nothing"},
      {"--resource", "disk=0.00001", "'0.00001' rounds to nothing"},
      {"--head", "", "--head: was given an empty value"},
      {"--token-file", "", "--token-file: was given an empty value"},
      {"--log-dir", "", "--log-dir: was given an empty value"},
      {"--node-host", "", "--node-host: was given an empty value"},
      {"--spill-directory", "", "--spill-directory: was given an empty value"},
      {"--object-store-memory", "-5", "'-5' is not a size"},
      {"--object-store-memory", "1", "'1' is not a size from 1MiB"},
      {"--object-store-memory", "18446744073709551616", "is not a size"},
      {"--object-store-memory", "4 parsecs", "'4 parsecs' is not a size"},
      {"--spill-directory", file, "'" + file + "'"},
      {"--spill-directory", "/proc/nowhere", "'/proc/nowhere'"},
      {"--spill-directory", cluster.folder() + "/none/spill",
       "there is no folder " + cluster.folder() + "/none;"},
      {"--resource", "=1", "--resource '=1' is not of the form NAME=AMOUNT"},
      {"--name", "two\nlines", "--name: it has a control character"},
      {"--token-file", "/proc/no/token",
       "/proc/no/token: No such file or directory; copy it from the head's machine"},
  };
  for (const auto& bad : all) {
    const auto worker =
        run({TROUPE_PROGRAM, "worker", bad.option, bad.value}, cluster.environment());
    INFO(bad.option << ' ' << bad.value << ": " << worker.output);
    CHECK((worker.exit_code == 1 || worker.exit_code == 2));
    CHECK_THAT(worker.output, Catch::Contains(bad.named));
    CHECK(worker.output.size() < 400);
  }
  for (const std::string option : {"--resource", "--label"}) {
    const auto twice =
        run({TROUPE_PROGRAM, "worker", option, "foo=1", option, "foo=2"}, cluster.environment());
    CHECK(twice.exit_code == 1);
    CHECK_THAT(twice.output, Catch::Contains(option + " 'foo' is given twice"));
  }
  const auto both = run({TROUPE_PROGRAM, "head", "--port", "0", "--no-node", "--cpus", "2"},
                        cluster.environment());
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.output, Catch::Contains("--cpus excludes --no-node"));
  const auto stateless = run({TROUPE_PROGRAM, "head", "--state-dir", ""}, cluster.environment());
  CHECK(stateless.exit_code == 2);
  CHECK_THAT(stateless.output, Catch::Contains("--state-dir: was given an empty value"));
  const auto unknown = run({TROUPE_PROGRAM, "haed"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.output, Catch::Contains("no command 'haed'"));
}

TEST_CASE("a node that offers what no machine has is refused, and so is an address without a value",
          "[cli][refusal]") {
  TestCluster cluster(0);
  for (const std::string cpus : {"nan", "1e30"}) {
    const auto worker = run({TROUPE_PROGRAM, "worker", "--head", cluster.address(), "--cpus", cpus},
                            cluster.environment());
    INFO(worker.output);
    CHECK(worker.exit_code != 0);
  }
  const auto driver = run({TROUPE_TEST_DRIVER, "task", "--address"}, cluster.environment());
  CHECK(driver.exit_code == 1);
  CHECK_THAT(driver.output, Catch::Contains("--address needs a value"));
}

TEST_CASE(
    "a node that its head refuses ends with the head's reason and exit code 1, and so does a head "
    "with it",
    "[cli][refusal]") {
  TestCluster cluster(0);
  const auto worker = run({TROUPE_PROGRAM, "worker", "--head", cluster.address(), "--cpus", "1e30"},
                          cluster.environment());
  INFO(worker.output);
  CHECK(worker.exit_code == 1);
  CHECK_THAT(worker.output, Catch::Contains("the head at " + cluster.address() +
                                            " refuses this node: an amount") &&
                                Catch::Contains("1e+30"));
  TemporaryFolder folder;
  const auto head = run({TROUPE_PROGRAM, "head", "--port", "0", "--cpus", "1e30"},
                        {"XDG_STATE_HOME=" + folder.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  INFO(head.output);
  CHECK(head.exit_code == 1);
  CHECK_THAT(head.output,
             Catch::Contains("refuses this node: an amount") && Catch::Contains("1e+30"));
  CHECK(processes_with("XDG_STATE_HOME=" + folder.path()).empty());
}

TEST_CASE("a node that offers more GPUs than its machine has says so once", "[cli]") {
  TestCluster cluster(0);
  cluster.add_worker({"--gpus", "1000"});
  const auto& output = cluster.worker(0).output();
  CHECK_THAT(output, Catch::Contains("note: --gpus 1000 offers more than NVIDIA's driver finds"));
  cluster.add_worker({"--gpus", "0"});
  CHECK_THAT(cluster.worker(1).output(), !Catch::Contains("note: --gpus"));
}

TEST_CASE("a head that listens on every address says by which name others reach it", "[cli]") {
  TemporaryFolder folder;
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  Child head({TROUPE_PROGRAM, "head", "--host", "0.0.0.0", "--port", "0", "--no-node"},
             environment);
  head.wait_for_output("token file:");
  CHECK_THAT(head.output(),
             Catch::Contains("listens on 0.0.0.0:") && !Catch::Contains("--head 0.0.0.0"));
  CHECK(run({TROUPE_PROGRAM, "stop"}, environment).exit_code == 0);
  CHECK(head.wait());
}

TEST_CASE("a head on loopback says that no other machine reaches it", "[cli]") {
  TemporaryFolder folder;
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  Child head({TROUPE_PROGRAM, "head", "--port", "0", "--no-node"}, environment);
  head.wait_for_output("this machine alone; --host with an address");
  CHECK(run({TROUPE_PROGRAM, "stop"}, environment).exit_code == 0);
  CHECK(head.wait());
}

TEST_CASE("where a killed head has left its address behind, the file is named with what to do",
          "[cli][refusal]") {
  TemporaryFolder folder;
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  Child head({TROUPE_PROGRAM, "head", "--port", "0", "--no-node"}, environment);
  head.wait_for_output("token file:");
  head.signal(SIGKILL);
  REQUIRE(head.wait());
  for (const std::string command : {"status", "stop", "worker"}) {
    const auto done = run({TROUPE_PROGRAM, command}, environment);
    INFO(done.output);
    CHECK(done.exit_code == 1);
    CHECK_THAT(done.output,
               Catch::Contains("nothing listens on") &&
                   Catch::Contains("the address is from " + folder.path() + "/troupe/address") &&
                   Catch::Contains("--head HOST:PORT") && Catch::Contains("remove that file"));
  }
  const auto named = run({TROUPE_PROGRAM, "status", "--head", "127.0.0.1:1"}, environment);
  CHECK_THAT(named.output, !Catch::Contains("the address is from"));
  // It overwrites the file.
  Child next({TROUPE_PROGRAM, "head", "--port", "0", "--no-node"}, environment);
  next.wait_for_output("token file:");
  CHECK(run({TROUPE_PROGRAM, "status"}, environment).exit_code == 0);
}

TEST_CASE(
    "a worker whose --node-host is not this machine's ends with exit code 1 and has not joined",
    "[cli][refusal]") {
  TestCluster cluster(0);
  const auto worker =
      run({TROUPE_PROGRAM, "worker", "--head", cluster.address(), "--node-host", "192.0.2.1"},
          cluster.environment());
  INFO(worker.output);
  CHECK(worker.exit_code == 1);
  CHECK_THAT(worker.output, Catch::Contains("--node-host") &&
                                Catch::Contains("192.0.2.1 is no address of this machine"));
  CHECK(nlohmann::json::parse(cluster.status())["nodes"].empty());
}

TEST_CASE("a token file that others can read is refused", "[cli][refusal][security]") {
  TemporaryFolder folder;
  const auto file = folder.path() + "/token";
  std::ofstream(file) << std::string(64, 'b') << '\n';
  const auto head = run({TROUPE_PROGRAM, "head", "--port", "0", "--token-file", file},
                        {"XDG_STATE_HOME=" + folder.path()});
  CHECK(head.exit_code == 1);
  CHECK_THAT(head.output, Catch::Contains("chmod 600"));
}
