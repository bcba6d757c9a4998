#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
namespace fs = std::filesystem;

namespace {

/// A token file to start a head with, and a state folder of that head's own.
struct Fresh {
  TemporaryFolder folder;
  const std::string file = folder.path() + "/token";
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  const std::vector<std::string> head{TROUPE_PROGRAM, "head",         "--port", "0",
                                      "--no-node",    "--token-file", file};

  void write(const std::string& text,
             fs::perms mode = fs::perms::owner_read | fs::perms::owner_write) const {
    std::ofstream(file) << text;
    fs::permissions(file, mode);
  }
};

/// This thread, and each process that it starts, ends where it would have a file reach the disk.
void kill_at_fsync() {
  sock_filter rules[]{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fsync, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = static_cast<unsigned short>(std::size(rules)), .filter = rules};
  CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

}  // namespace

TEST_CASE("a token file that is named comes before TROUPE_TOKEN", "[cli][token]") {
  TestCluster cluster(1);
  auto environment = cluster.environment();
  environment.at(1) = "TROUPE_TOKEN=" + std::string(64, 'a');
  const auto file = cluster.token_file();
  const auto status = run(
      {TROUPE_PROGRAM, "status", "--head", cluster.address(), "--token-file", file}, environment);
  INFO(status.output);
  CHECK(status.exit_code == 0);
  const auto driver =
      run({TROUPE_TEST_DRIVER, "task", "--address", cluster.address(), "--token-file", file},
          environment);
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
}

TEST_CASE("a head whose token file was named prints commands that name it", "[cli][token]") {
  Fresh fresh;
  const auto strange = fresh.folder.path() + "/it's a token";
  auto arguments = fresh.head;
  arguments.back() = strange;
  Child head(arguments, fresh.environment);
  head.wait_for_output("mode 0600");
  const auto command_after = [&](const std::string& label) {
    const auto& printed = head.output();
    const auto begin = printed.find(label) + label.size();
    return printed.substr(begin, printed.find('\n', begin) - begin);
  };
  const auto in_shell = [&](const std::string& command) {
    return run({"/bin/sh", "-c", command}, fresh.environment);
  };
  auto program = command_after("run a program:  ");
  program.replace(program.find("./program"), std::string::npos,
                  std::string(TROUPE_PROGRAM) + " status");
  CHECK(in_shell(program).exit_code == 0);
  auto worker = command_after("add a machine:  ");
  REQUIRE(worker.starts_with("troupe worker "));
  Child node({"/bin/sh", "-c", "exec " + std::string(TROUPE_PROGRAM) + worker.substr(6)},
             fresh.environment);
  node.wait_for_output("node 1 of the cluster");
  node.signal(SIGTERM);
  CHECK(node.wait());
  head.signal(SIGTERM);
  CHECK(head.wait());
}

TEST_CASE("an empty token file of a head is to be removed, not copied", "[cli][token][refusal]") {
  const Fresh fresh;
  fresh.write("");
  const auto head = run(fresh.head, fresh.environment);
  CHECK(head.exit_code == 1);
  CHECK_THAT(head.output,
             Catch::Contains(fresh.file + " is empty: remove it") && !Catch::Contains("copy"));
}

TEST_CASE("a file that holds no token is not to be closed to others", "[cli][token][refusal]") {
  const Fresh fresh;
  for (const std::string& text :
       {std::string("root:x:0:0:root:/root:/bin/sh\n"), std::string(100'000, 'a')}) {
    fresh.write(text, fs::perms(0644));
    const auto head = run(fresh.head, fresh.environment);
    CHECK(head.exit_code == 1);
    CHECK_THAT(head.output,
               Catch::Contains(fresh.file + " is no token file") && !Catch::Contains("chmod"));
  }
}

TEST_CASE("a head that dies while it writes its token leaves none, and the next one makes it",
          "[cli][token]") {
  const Fresh fresh;
  std::string command = "ulimit -c 0; exec";
  for (const auto& argument : fresh.head) command += " '" + argument + "'";
  Finished died;
  std::thread([&] {
    kill_at_fsync();
    died = run({"/bin/sh", "-c", command}, fresh.environment);
  }).join();
  CHECK(died.exit_code == 128 + SIGSYS);
  CHECK_FALSE(fs::exists(fresh.file));

  Child head(fresh.head, fresh.environment);
  head.wait_for_output("token file:");
  CHECK(fs::file_size(fresh.file) == 65);
  CHECK(fs::status(fresh.file).permissions() == fs::perms(0600));
  CHECK(run({TROUPE_PROGRAM, "stop", "--token-file", fresh.file}, fresh.environment).exit_code ==
        0);
  CHECK(head.wait());
}

TEST_CASE("a token that exceeds the limit of file sizes is refused as on a full disk",
          "[cli][token][refusal]") {
  const Fresh fresh;
  std::string command = "ulimit -f 0; exec";
  for (const auto& argument : fresh.head) command += " '" + argument + "'";
  // ThreadSanitizer writes a file into TMPDIR before main() begins to ignore SIGXFSZ, if that is a folder.
  auto environment = fresh.environment;
  environment.push_back("TMPDIR=" + fresh.file + "/none");
  const auto head = run({"/bin/sh", "-c", command}, environment);
  CHECK(head.exit_code == 1);
  CHECK_THAT(head.output, Catch::Contains("cannot be written: File too large"));
  CHECK_FALSE(fs::exists(fresh.file));
}

TEST_CASE("where nothing listens, that is said before a token that is not there",
          "[cli][token][refusal]") {
  TestCluster cluster(0);
  const TemporaryFolder folder;  // without a token
  for (const auto& address : {std::string("127.0.0.1:1"), cluster.address()}) {
    const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                               "TROUPE_TOKEN=", "TROUPE_ADDRESS=" + address};
    for (const auto& words :
         {std::vector<std::string>{TROUPE_TEST_DRIVER, "task"},
          std::vector<std::string>{TROUPE_PROGRAM, "status"},
          std::vector<std::string>{TROUPE_PROGRAM, "worker", "--head", address}}) {
      const auto finished = run(words, environment);
      INFO(words[0] << " " << words[1] << " at " << address << ": " << finished.output);
      CHECK(finished.exit_code == 1);
      const bool nobody = address != cluster.address();
      CHECK((finished.output.find("nothing listens on 127.0.0.1:1") != std::string::npos) ==
            nobody);
      CHECK((finished.output.find("no token: copy") != std::string::npos) == !nobody);
    }
  }
}

TEST_CASE("an argument that is nearly --address is asked about, and left to the program",
          "[cli][refusal]") {
  const auto driver =
      run({TROUPE_TEST_DRIVER, "task", "--adress", "127.0.0.1:1"}, {"TROUPE_ADDRESS="});
  INFO(driver.output);
  CHECK(driver.exit_code == 0);  // in a private cluster
  CHECK_THAT(driver.output, Catch::Contains("'--adress' is no option of troupe::init") &&
                                Catch::Contains("was --address meant?"));
}
