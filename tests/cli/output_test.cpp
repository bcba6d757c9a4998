// What worker processes print: where it appears, and when.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "stopped.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

Finished run_output_driver(const TestCluster& cluster, const std::string& what,
                           const std::vector<std::string>& more = {},
                           Streams streams = Streams::Together) {
  std::vector<std::string> command{TROUPE_TEST_OUTPUT_DRIVER, what};
  command.insert(command.end(), more.begin(), more.end());
  const auto done = run(std::move(command), cluster.environment(), kGuard, streams);
  INFO(done.output << done.errors);
  REQUIRE(done.exit_code == 0);
  return done;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) found.push_back(line);
  }
  return found;
}

/// What stands before a line that was printed once, with N for the number of a process.
std::string who_printed(const std::string& output, const std::string& line) {
  INFO(line);
  const auto end = output.find(") " + line + "\n");
  REQUIRE(end != std::string::npos);
  CHECK(count(output, ") " + line + "\n") == 1);
  const auto begin = output.rfind("\n(", end);
  const auto at = begin == std::string::npos ? 0 : begin + 1;
  REQUIRE(output.at(at) == '(');
  return std::regex_replace(output.substr(at + 1, end - at - 1), std::regex("(process|pid)=[0-9]+"),
                            "$1=N");
}

/// Of all worker processes whose logs are somewhere below that folder.
std::string text_below(const std::string& folder) {
  std::ostringstream all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().find("-process-") != std::string::npos)
      all << std::ifstream(entry.path()).rdbuf();
  }
  return all.str();
}

/// Of all nodes of this cluster.
std::string logs_of(const TestCluster& cluster) {
  return text_below(cluster.folder() + "/troupe/logs");
}

}  // namespace

TEST_CASE("the lines that a process printed before it was killed are in its log and in its error",
          "[cli][cluster][output]") {
  TestCluster cluster(1);
  for (const std::string what : {"dies", "parted", "actor_dies", "rank_dies"}) {
    INFO(what);
    const auto done = run_output_driver(cluster, what, {"--no-worker-output"});
    INFO(done.output);
    for (const std::string line : {"with printf", "with cout", "begun and ended"}) {
      CHECK_THAT(logs_of(cluster), Catch::Contains(line + "\n"));
      CHECK_THAT(done.output.substr(done.output.find("failed: ")), Catch::Contains(line));
    }
  }
}

TEST_CASE(
    "what worker processes of two nodes print appears on the driver's standard error, with the "
    "function, the actor or the rank that printed it",
    "[cli][cluster][output]") {
  TestCluster cluster(2);
  const auto done = run_output_driver(cluster, "speaks", {}, Streams::Apart);
  INFO(done.errors);
  CHECK(count(done.output, "process=") == 0);
  for (const std::string number : {"1", "2"})
    CHECK(who_printed(done.errors, "hello from a task on node " + number) ==
          "{anonymous}::greets process=N pid=N node=w" + number);
  CHECK_THAT(who_printed(done.errors, "an actor speaks"),
             Catch::StartsWith("{anonymous}::Speaker process=N pid=N node=w"));
  for (const std::string rank : {"0", "1"})
    CHECK_THAT(who_printed(done.errors, "rank " + rank + " counts"),
               Catch::StartsWith("rank " + rank + " {anonymous}::Speaker process=N pid=N node=w"));
  CHECK(count(logs_of(cluster), "hello from a task") == 2);
}

TEST_CASE("each line of short tasks that take turns in a process is shown with its function",
          "[cli][cluster][output]") {
  TestCluster cluster(1, 1);
  const auto done = run_output_driver(cluster, "changes");
  INFO(done.output);
  std::size_t found = 0, lost = 0;
  std::istringstream lines(done.output);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    if (line.find(") found ") != std::string::npos) {
      ++found;
      CHECK_THAT(line, Catch::StartsWith("({anonymous}::finds process="));
    } else if (line.find(") lost ") != std::string::npos) {
      ++lost;
      CHECK_THAT(line, Catch::StartsWith("({anonymous}::loses process="));
    }
  }
  CHECK(found == 500);
  CHECK(lost == 250);
}

TEST_CASE("what a task prints without a line end is shown as the job ends, and in the log",
          "[cli][cluster][output]") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"stops", "of stdio, without an end"}, {"stops_parted", "of iostreams, without an end"}};
  for (const auto& [what, text] : cases) {
    INFO(what);
    TestCluster cluster(1);
    const auto done = run_output_driver(cluster, what);
    INFO(done.output);
    CHECK(count(done.output, ") " + text + "\n") == 1);
    CHECK(logs_of(cluster) == text);
    const TemporaryFolder folder;
    const auto alone = run({TROUPE_TEST_OUTPUT_DRIVER, what}, {"XDG_STATE_HOME=" + folder.path()});
    INFO(alone.output);
    CHECK(count(alone.output, ") " + text + "\n") == 1);
    CHECK(text_below(folder.path()) == text);
  }
}

TEST_CASE("a line that several processes print appears once, and once more with their number",
          "[cli][cluster][output]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "4"});
  const auto done = run_output_driver(cluster, "four_repeat");
  INFO(done.output);
  std::size_t times = 0, shown = 0;
  for (const auto& line : lines_with(done.output, ") the same line")) {
    ++shown;
    const auto counted = line.find(" [");
    times += counted == std::string::npos ? 1 : std::stoul(line.substr(counted + 2));
  }
  CHECK(times == 4);
  CHECK(shown < 4);  // 2, unless the ranks are seconds apart on a busy machine
  CHECK(count(done.output, ") line of ") == 4);
}

TEST_CASE("the last lines of a node that stands still for seconds are waited for",
          "[cli][cluster][output]") {
  TestCluster cluster(1);
  Child driver({TROUPE_TEST_OUTPUT_DRIVER, "ends_with_a_line"}, cluster.environment());
  driver.wait_for_output("ready");
  driver.wait_for_output("an actor speaks");
  {
    const Stopped node(cluster.worker(0).agent());
    driver.signal(SIGUSR1);
    driver.wait_for_output("leaves");
    REQUIRE(cluster.has_node_silent_for(5));  // half as long as a node may be
    CHECK_FALSE(driver.wait(0s));
  }
  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 0);
  CHECK_THAT(driver.output(), Catch::Contains("last words"));
}

TEST_CASE("a flood of lines is bounded at the driver, says so, and is whole in the log",
          "[cli][cluster][output]") {
  TestCluster cluster(1);
  const auto began = std::chrono::steady_clock::now();
  const auto done = run_output_driver(cluster, "flood");
  const auto seconds = static_cast<std::size_t>(
      std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count());
  CHECK(count(done.output, " are left out here: it was too much in a second; its log has all") > 0);
  // 256 KiB in each second that has begun, and once more as the job ends; a line counts 64 bytes more
  // than it has.
  std::size_t shown = 0;
  for (const auto& line : lines_with(done.output, "of a flood"))
    shown += line.size() - line.find(") ") - 2 + 1 + 64;
  CHECK(shown > 0);
  CHECK(shown <= (seconds + 2) * (std::size_t{256 + 64} << 10));
  CHECK(count(logs_of(cluster), "of a flood") == 200'000);
  std::istringstream lines(done.output);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK((line.starts_with("(") || line.starts_with("troupe: ")));
  }
}

TEST_CASE("in a private cluster, too, it is said who printed a line, and the log has it",
          "[cli][output]") {
  const TemporaryFolder folder;
  const auto state = "XDG_STATE_HOME=" + folder.path();
  const auto logs = folder.path() + "/troupe/private-logs";
  const auto done = run({TROUPE_TEST_OUTPUT_DRIVER, "dies"}, {state});
  INFO(done.output);
  CHECK(count(done.output, ") with printf\n") == 1);
  CHECK_THAT(done.output.substr(done.output.find("failed: ")), Catch::Contains(logs));
  CHECK_THAT(text_below(logs), Catch::Contains("begun and ended\n"));

  std::filesystem::remove_all(logs);
  std::ofstream(logs) << "not a folder";
  const auto without = run({TROUPE_TEST_OUTPUT_DRIVER, "dies"}, {state});
  INFO(without.output);
  CHECK_THAT(without.output, Catch::Contains("cannot make the log directory " + logs));
  CHECK(count(without.output, "with printf\n") == 1);
}

TEST_CASE("a program can do without the output of its worker processes", "[cli][cluster][output]") {
  TestCluster cluster(2);
  // By its command line, or by InitOptions::worker_output.
  const auto asked = run_output_driver(cluster, "speaks", {"--no-worker-output"}, Streams::Apart);
  CHECK_THAT(asked.output, !Catch::Contains("hello") && Catch::StartsWith("pid "));
  CHECK_THAT(asked.errors, !Catch::Contains("hello"));
  CHECK(count(logs_of(cluster), "hello from a task") == 2);
  const auto written = run_output_driver(cluster, "speaks_unheard", {}, Streams::Apart);
  CHECK_THAT(written.output, !Catch::Contains("hello") && Catch::StartsWith("pid "));
  CHECK_THAT(written.errors, !Catch::Contains("hello"));
  CHECK(count(logs_of(cluster), "hello from a task") == 4);
}

TEST_CASE("the log folder of each node is in the status", "[cli][cluster][output]") {
  TestCluster cluster(1);
  const auto status = nlohmann::json::parse(cluster.status());
  const auto folder = status.at("nodes").at(0).at("logs").get<std::string>();
  CHECK(std::filesystem::is_directory(folder));
  const auto shown = run({TROUPE_PROGRAM, "status"}, cluster.environment());
  CHECK_THAT(shown.output, Catch::Contains("logs " + folder));
}

TEST_CASE("the logs of a job, an actor and a process are printed, also once they have ended",
          "[cli][cluster][output]") {
  TestCluster cluster(2);
  const auto logs = [&](const std::string& what, const std::string& which) {
    return run({TROUPE_PROGRAM, "logs", what, which}, cluster.environment(), kGuard,
               Streams::Apart);
  };
  std::string process;
  {
    auto driver = Child({TROUPE_TEST_OUTPUT_DRIVER, "waits"}, cluster.environment());
    driver.wait_for_output("waiting");
    const auto actor = nlohmann::json::parse(cluster.status()).at("actors").at(0);
    process = actor.at("process").dump();
    CHECK(logs("actor", "speaker").output == "an actor speaks\n");
    CHECK(logs("actor", actor.at("actor").dump()).output == "an actor speaks\n");
  }
  CHECK(cluster.all_is_free());
  CHECK(logs("process", process).output == "an actor speaks\n");
  CHECK_THAT(logs("actor", "speaker").errors, Catch::Contains("there is no actor 'speaker'"));

  run_output_driver(cluster, "speaks");
  const auto of_job = logs("job", "2");
  INFO(of_job.output);
  for (const std::string node : {"1", "2"}) {
    CHECK_THAT(of_job.output,
               Catch::Contains(" node=w" + node + ") hello from a task on node " + node + "\n"));
  }
  CHECK(logs("process", "4711").exit_code == 1);
  CHECK(logs("job", "x").exit_code == 1);
}

TEST_CASE("logs without a word lists what there are logs of, and a number alone is a job's",
          "[cli][cluster][output]") {
  TestCluster cluster(1);
  const auto logs = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {TROUPE_PROGRAM, "logs"});
    return run(words, cluster.environment());
  };
  auto driver = Child({TROUPE_TEST_OUTPUT_DRIVER, "waits"}, cluster.environment());
  driver.wait_for_output("waiting");
  const auto process =
      nlohmann::json::parse(cluster.status()).at("actors").at(0).at("process").dump();
  const auto listed = logs({});
  CHECK(listed.exit_code == 0);
  CHECK_THAT(listed.output, Catch::Contains("troupe logs job 1 ") &&
                                Catch::Contains("troupe logs actor speaker ") &&
                                Catch::Contains("troupe logs process " + process + " ") &&
                                Catch::Contains("/job-JOB-process-PROCESS.log on node 1 (w1)"));
  CHECK_THAT(logs({"1"}).output, Catch::Contains("an actor speaks\n"));
  CHECK(logs({"--job", "1"}).output == logs({"job", "1"}).output);
  CHECK(printed_by({TROUPE_PROGRAM, "logs", "speaker"}, cluster.environment()) ==
        "an actor speaks\n");
  CHECK_THAT(logs({"nobody"}).output, Catch::Contains("there is no actor 'nobody' now") &&
                                          Catch::Contains("`troupe logs job N`"));
  CHECK(logs({"job"}).exit_code == 2);
  CHECK_THAT(logs({"job"}).output, Catch::Contains("which job? `troupe logs` lists them"));
  CHECK(logs({"jobs", "1"}).exit_code == 2);
  CHECK_THAT(logs({"jobs", "1"}).output, Catch::Contains("did you mean 'job'?"));
  const auto other = run({TROUPE_PROGRAM, "job", "logs", "1"}, cluster.environment());
  CHECK(other.exit_code == 1);
  CHECK_THAT(other.output, Catch::Contains("'1' is the number of the program test_output_driver") &&
                               Catch::Contains("`troupe logs job 1` has what it printed"));
  CHECK_THAT(run({TROUPE_PROGRAM, "job", "logs", "speaker"}, cluster.environment()).output,
             Catch::Contains("`troupe logs actor speaker` has"));
  CHECK_THAT(logs({"77"}).output, Catch::Contains("has a log of job 77: `troupe logs` lists"));
  driver.signal(SIGKILL);
  CHECK(eventually([&] {
    return logs({}).output.find(
               "troupe logs job 1                has ended; its processes printed "
               "16 B\n") != std::string::npos;
  }));
}

TEST_CASE("the log of a job of `troupe run` says where its ranks print", "[cli][cluster][output]") {
  TestCluster cluster(1);
  const auto log_of_job = [&] {
    return run({TROUPE_PROGRAM, "logs", "job", "1"}, cluster.environment(), kGuard, Streams::Apart)
        .errors;
  };
  const std::string where =
      "; what the ranks of a `troupe run` print is on its terminal, or in the files of its "
      "--log-dir, and in no log\n";
  auto gang = Child({TROUPE_PROGRAM, "run", "--", "sh", "-c", "echo begun; exec sleep 600"},
                    cluster.environment());
  gang.wait_for_output("begun");
  CHECK(log_of_job() == "troupe: job 1 has printed nothing so far" + where);
  gang.signal(SIGTERM);
  CHECK(gang.wait());
  CHECK(eventually([&] { return log_of_job() == "troupe: job 1 has printed nothing" + where; }));
}

TEST_CASE("the log of a process that has printed nothing says so", "[cli][cluster][output]") {
  TestCluster cluster(1);
  auto driver = cluster.driver("hold");
  driver.wait_for_output("holding");
  const auto logs =
      run({TROUPE_PROGRAM, "logs", "job", "1"}, cluster.environment(), kGuard, Streams::Apart);
  CHECK(logs.exit_code == 0);
  CHECK(logs.output.empty());
  CHECK_THAT(logs.errors, Catch::EndsWith("troupe: job 1 has printed nothing so far\n"));
  driver.signal(SIGKILL);
}

TEST_CASE("logs -f goes on with what is printed", "[cli][cluster][output]") {
  TestCluster cluster(1);
  auto follower = Child({TROUPE_PROGRAM, "logs", "-f", "job", "1"}, cluster.environment());
  follower.wait_for_output("no node that is there has a log of job 1");
  run_output_driver(cluster, "actor_dies");
  follower.wait_for_output(") begun and ended\n");
  CHECK(count(follower.output(), "with printf") == 1);
  follower.wait_for_output("troupe: job 1 has ended\n");
  CHECK(follower.wait() == 0);
}

TEST_CASE("logs are printed byte for byte", "[cli][cluster][output]") {
  TestCluster cluster(1);
  run_output_driver(cluster, "bytes");
  const auto shown = run({TROUPE_PROGRAM, "logs", "job", "1"}, cluster.environment());
  CHECK_THAT(shown.output, Catch::Contains(") \xff\xfe and \xc3\x28\n"));
  CHECK_THAT(shown.output, !Catch::Contains("left out"));
}

TEST_CASE("logs -f of a cluster that is stopped ends and says so", "[cli][cluster][output]") {
  TestCluster cluster(1);
  auto driver = Child({TROUPE_TEST_OUTPUT_DRIVER, "logs_change"}, cluster.environment());
  auto follower = Child({TROUPE_PROGRAM, "logs", "-f", "job", "1"}, cluster.environment());
  follower.wait_for_output("the first line");
  run({TROUPE_PROGRAM, "stop"}, cluster.environment());
  CHECK(cluster.head().wait());
  CHECK(follower.wait() != 0);
  CHECK_THAT(follower.output(), !Catch::Contains("leaves behind"));
}

TEST_CASE("a log that is shortened or removed is said to be, and its folder is made again",
          "[cli][cluster][output]") {
  TestCluster cluster(1);
  auto driver = Child({TROUPE_TEST_OUTPUT_DRIVER, "logs_change"}, cluster.environment());
  driver.wait_for_output("the first line");
  const auto folder = nlohmann::json::parse(cluster.status()).at("nodes").at(0).at("logs");
  for (const auto& log : std::filesystem::directory_iterator(folder.get<std::string>()))
    if (std::filesystem::file_size(log) > 0) std::filesystem::resize_file(log, 0);
  driver.wait_for_output("was shortened");
  driver.signal(SIGUSR1);
  driver.wait_for_output("the second line");
  std::filesystem::remove_all(folder.get<std::string>());
  driver.wait_for_output("was removed or renamed");
  driver.signal(SIGUSR1);
  driver.wait_for_output("the line of another process");
  CHECK(driver.wait() == 0);
}

TEST_CASE("logs -f of an actor or a process keeps its lines whole, and has its last words",
          "[cli][cluster][output]") {
  TestCluster cluster(1);
  auto driver = Child({TROUPE_TEST_OUTPUT_DRIVER, "hesitates"}, cluster.environment());
  driver.wait_for_output("begins");
  auto follower = Child({TROUPE_PROGRAM, "logs", "-f", "actor", "speaker"}, cluster.environment());
  follower.wait_for_output("an actor speaks\n");
  const auto process =
      nlohmann::json::parse(cluster.status()).at("actors").at(0).at("process").dump();
  auto other = Child({TROUPE_PROGRAM, "logs", "-f", "process", process}, cluster.environment());
  other.wait_for_output("an actor speaks\n");
  driver.signal(SIGUSR1);
  for (auto* each : {&follower, &other}) {
    each->wait_for_output("last words\n");
    CHECK_THAT(each->output(), Catch::Contains("one line in two pieces\n"));
  }
}

TEST_CASE("a pipe in the place of a log is refused, and stops no node", "[cli][cluster][output]") {
  TestCluster cluster(0);
  const auto logs = cluster.folder() + "/logs";
  std::filesystem::create_directory(logs);
  const auto pipe = logs + "/job-1-zygote.log";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  cluster.add_worker({"--log-dir", logs});
  const auto refused = cluster.run_driver("task");
  INFO(refused.output);
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Catch::Contains("cannot open its log file " + pipe +
                                             ": it is there and is no regular file"));
  CHECK(cluster.run_driver("task").exit_code == 0);  // job 2
}

TEST_CASE("nodes that share a log folder each show what is theirs", "[cli][cluster][output]") {
  TestCluster cluster(0);
  const auto logs = cluster.folder() + "/shared";
  std::filesystem::create_directory(logs);
  // What an earlier cluster has left there.
  std::ofstream(logs + "/job-1-process-2.log") << "of another time\n";
  std::ofstream(logs + "/job-1-process-99.log") << "of another time\n";
  for (int node = 0; node < 2; ++node) cluster.add_worker({"--log-dir", logs});
  run_output_driver(cluster, "speaks");
  const auto shown = run({TROUPE_PROGRAM, "logs", "job", "1"}, cluster.environment()).output;
  INFO(shown);
  for (const std::string node : {"1", "2"})
    CHECK(count(shown, "hello from a task on node " + node + "\n") == 1);
  CHECK(count(shown, "of another time") == 0);
}
