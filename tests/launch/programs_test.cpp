#include "host/programs.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "process_stat.hpp"
#include "support/child.hpp"

using namespace troupe::launch;
using namespace std::chrono_literals;
using troupe::test::kGuard;
using troupe::test::runs;
using troupe::test::stat_of;

namespace {

ProgramSpec shell(const std::string& script) {
  return {{"sh", "-c", script}, {{"PATH", "/usr/bin:/bin"}, {"GREETING", "hello"}}, "/tmp"};
}

/// All that the programs had to tell.
struct Told {
  std::map<int, std::string> output;
  std::map<int, std::string> error;
  std::map<int, RankEnd> ends;
};
Told to_the_end(Programs& programs, std::chrono::seconds limit = kGuard) {
  Told told;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (bool over = false; !over;) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    auto news = programs.next(100ms);
    for (const auto& written : news.written) {
      CHECK_FALSE(told.ends.contains(written.local));
      (written.to_error ? told.error : told.output)[written.local] += written.text;
    }
    for (const auto& end : news.ends) told.ends[end.local] = end;
    over = news.over;
  }
  return told;
}

}  // namespace

TEST_CASE("programs of one host run together, and tell what they write and how they end",
          "[launch]") {
  Programs programs({shell("echo $GREETING; pwd; exit 3"), shell("echo no >&2; kill -9 $$")});
  const auto told = to_the_end(programs);
  CHECK(told.output.at(0) == "hello\n/tmp\n");
  CHECK(told.ends.at(0).exit_code == 3);
  CHECK(told.error.at(1) == "no\n");
  CHECK(told.ends.at(1).signal == SIGKILL);
  CHECK_FALSE(told.ends.at(1).was_told_to);
}

TEST_CASE("nothing of much output is lost, and text without a line end gets one", "[launch]") {
  Programs programs({shell("seq 1 400000; printf end")});
  std::size_t size = 0;
  std::string last;
  for (bool over = false; !over;) {
    ::usleep(1000);  // slower than the program
    auto news = programs.next(100ms);
    for (const auto& written : news.written) {
      size += written.text.size();
      last = written.text;
    }
    over = news.over;
  }
  CHECK(size == 2'688'895 + 4);
  CHECK_THAT(last, Catch::EndsWith("end\n"));
}

TEST_CASE("megabytes without a line end are handed out in pieces, and any byte arrives",
          "[launch]") {
  Programs programs({shell("head -c 3000000 /dev/zero")});
  const auto told = to_the_end(programs);
  CHECK(std::count(told.output.at(0).begin(), told.output.at(0).end(), '\0') == 3'000'000);
}

TEST_CASE("that a program has ended is told though nobody takes what it wrote", "[launch]") {
  Programs programs({shell("echo words; exit 3")});
  std::vector<RankEnd> exits;
  const auto deadline = std::chrono::steady_clock::now() + kGuard;
  while (exits.empty() && std::chrono::steady_clock::now() < deadline) {
    auto news = programs.next(100ms, false);
    CHECK(news.written.empty());
    CHECK(news.ends.empty());
    exits = std::move(news.exits);
  }
  REQUIRE(exits.size() == 1);
  CHECK(exits[0].exit_code == 3);
  const auto told = to_the_end(programs);
  CHECK(told.output.at(0) == "words\n");
  CHECK(told.ends.at(0).exit_code == 3);
}

TEST_CASE("a program that ignores SIGTERM is killed after the grace", "[launch]") {
  Programs programs({shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")});
  while (programs.next(100ms).written.empty()) {
  }
  const auto begun = std::chrono::steady_clock::now();
  programs.stop(300ms);
  const auto told = to_the_end(programs);
  CHECK(std::chrono::steady_clock::now() - begun >= 300ms);
  CHECK(told.ends.at(0).signal == SIGKILL);
  CHECK(told.ends.at(0).was_told_to);
}

TEST_CASE("a program that ends on SIGTERM may say its last words", "[launch]") {
  Programs programs(
      {shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")});
  while (programs.next(100ms).written.empty()) {
  }
  programs.stop(kGuard);
  const auto told = to_the_end(programs);
  CHECK(told.output.at(0) == "bye\n");
  CHECK(told.ends.at(0).exit_code == 0);
}

TEST_CASE("a program is over though a child of it holds its output open", "[launch]") {
  Programs programs({shell("sleep 600 & echo $!")});
  const auto told = to_the_end(programs);  // of which it is no part: that takes a minute at most
  const auto child = std::stoi(told.output.at(0));
  CHECK(told.output.at(0) == std::to_string(child) + "\n");
  programs.stop(0ms);
  // On a node the end of the worker process ends it. Here it is still there, and nobody else ends it.
  CHECK(::kill(child, SIGKILL) == 0);
}

TEST_CASE("a limit that has ended a program is named, and none where somebody sent the signal",
          "[launch]") {
  const auto limit_of = [](const std::string& script) {
    // The kernel's counts of kills for want of memory are of the whole machine.
    const std::vector<troupe::node::MemoryKills::Counter> none;
    Programs programs({shell("ulimit -c 0; " + script)}, troupe::node::MemoryKills(none));
    return to_the_end(programs).ends.at(0);
  };
  const auto file = limit_of("ulimit -f 2; exec head -c 5000 /dev/zero > limited-$$");
  CHECK(file.signal == SIGXFSZ);
  CHECK(file.limit == "it reached its limit of 1.0 KiB for a file (ulimit -f)");
  ::unlink(("/tmp/limited-" + std::to_string(file.pid)).c_str());
  const auto time = limit_of("ulimit -S -t 1; while :; do :; done");
  CHECK(time.signal == SIGXCPU);
  CHECK(time.limit == "it reached its limit of 1 s of CPU time (ulimit -t)");
  CHECK(limit_of("kill -XFSZ $$").signal == SIGXFSZ);
  CHECK(limit_of("kill -XFSZ $$").limit.empty());
  CHECK(limit_of("ulimit -t 60; kill -KILL $$").limit.empty());
}

TEST_CASE("the kernel's count of kills for want of memory explains a SIGKILL, and nothing else",
          "[launch]") {
  const auto counter = "/tmp/troupe-oom-" + std::to_string(::getpid());
  const auto limit_of = [&](const std::string& script) {
    std::ofstream(counter) << "oom_kill 3\n";
    troupe::node::MemoryKills memory({{counter, "oom_kill", "memory ran out"}});
    Programs programs({shell("counter=" + counter + "; " + script)}, std::move(memory));
    return to_the_end(programs).ends.at(0).limit;
  };
  CHECK(limit_of("echo oom_kill 4 > $counter; kill -KILL $$") == "memory ran out");
  CHECK(limit_of("kill -KILL $$").empty());
  CHECK(limit_of("echo oom_kill 4 > $counter; kill -TERM $$").empty());
  ::unlink(counter.c_str());
}

TEST_CASE("programs are killed with the object that runs them", "[launch]") {
  pid_t pid = 0;
  {
    Programs programs({shell("echo $$; exec sleep 600")});
    std::string text;
    while (text.empty()) {
      for (const auto& written : programs.next(100ms).written) text += written.text;
    }
    pid = std::stoi(text);
    CHECK(runs(pid));
  }
  CHECK(stat_of(pid).state.empty());
}

TEST_CASE("a program that cannot be started has ended, with the reason", "[launch]") {
  const Variables path{{"PATH", "/usr/bin:/bin"}};
  const auto why = [&path](std::vector<std::string> arguments,
                           const std::string& directory = "/tmp") {
    Programs programs({{std::move(arguments), path, directory}});
    return to_the_end(programs).ends.at(0);
  };
  CHECK(why({"no-such-program"}).exit_code == kNotFound);
  CHECK_THAT(why({"no-such-program"}).not_started,
             Catch::Contains("'no-such-program' in its PATH (/usr/bin:/bin)"));
  CHECK(why({"./no-such-file"}).exit_code == kNotFound);
  CHECK_THAT(why({"./no-such-file"}).not_started, Catch::Contains("'/tmp/./no-such-file'"));
  CHECK(why({"/etc/passwd"}).exit_code == kNotExecutable);
  CHECK_THAT(why({"/etc/passwd"}).not_started, Catch::Contains("chmod +x"));
  CHECK_THAT(why({"/etc"}).not_started, Catch::Contains("is a folder"));
  const troupe::test::TemporaryFolder folder;
  for (const auto* name : {"train.py", "train.sh"}) std::ofstream(folder.path() + "/" + name);
  CHECK_THAT(why({"./train.sh"}, folder.path()).not_started,
             Catch::Contains("is not executable") && Catch::Contains("as in 'sh ./train.sh'"));
  CHECK_THAT(why({"train.py"}, folder.path()).not_started,
             Catch::Contains("'train.py' in its PATH (/usr/bin:/bin)") &&
                 Catch::Contains("is there: write its interpreter before it, as in 'python3 "
                                 "train.py'"));
  std::filesystem::permissions(folder.path() + "/train.sh", std::filesystem::perms::owner_all);
  CHECK_THAT(why({"train.sh"}, folder.path()).not_started,
             Catch::Contains("is there: write './train.sh'"));
  CHECK_THAT(why({"true"}, "/no/such/folder").not_started, Catch::Contains("--workdir"));
}
