#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/child.hpp"

using namespace troupe::test;
using nlohmann::json;

/// `troupe run` without a cluster: on this machine, at once.
namespace {

const std::vector<std::string> kNoCluster{"TROUPE_ADDRESS=", "TROUPE_TOKEN="};

Finished troupe_run(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run"});
  auto environment = kNoCluster;
  environment.insert(environment.end(), more.begin(), more.end());
  return run(std::move(arguments), environment);
}

std::string content(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("troupe run starts a program on each rank, and prints whole lines with their rank",
          "[launch]") {
  const auto done =
      troupe_run({"-n", "3", "--", "sh", "-c", "echo rank $RANK of $WORLD_SIZE; echo b"});
  CHECK(done.exit_code == 0);
  for (const auto* line :
       {"[0] rank 0 of 3\n", "[1] rank 1 of 3\n", "[2] rank 2 of 3\n", "[2] b\n"})
    CHECK_THAT(done.output, Catch::Contains(line));
  CHECK_THAT(done.output, Catch::Contains("troupe run: 3 ranks on 1 node ended well after"));
}

TEST_CASE("options of the program stay its own, with and without --", "[launch]") {
  CHECK_THAT(troupe_run({"echo", "-n", "x", "--", "y"}).output, Catch::Contains("[0] x -- y\n"));
  CHECK_THAT(troupe_run({"--", "echo", "-n", "x", "--", "y"}).output,
             Catch::Contains("[0] x -- y\n"));
}

TEST_CASE("the exit status is that of the rank that failed first, which is told", "[launch]") {
  const auto done = troupe_run(
      {"-n", "3", "--", "sh", "-c", "echo last words $RANK; [ $RANK != 1 ] || exit 7; sleep 600"});
  CHECK(done.exit_code == 7);
  CHECK_THAT(done.output, Catch::Contains("rank 1 on node"));
  CHECK_THAT(done.output,
             Catch::Contains("ended with exit code 7; the other 2 were ended; its last "
                             "lines:\n    last words 1\n"));
  const auto killed =
      troupe_run({"-n", "2", "--", "sh", "-c", "[ $RANK = 0 ] && kill -SEGV $$; sleep 600"});
  CHECK(killed.exit_code == 128 + SIGSEGV);
  CHECK_THAT(killed.output, Catch::Contains("was ended by signal 11 (Segmentation fault)"));
}

TEST_CASE("a program that is not there ends with 127, one that is none with 126", "[launch]") {
  const auto missing = troupe_run({"-n", "2", "--max-restarts", "5", "--", "no-such-program"});
  CHECK(missing.exit_code == 127);
  CHECK_THAT(missing.output, Catch::Contains("there is no program 'no-such-program' in its PATH"));
  CHECK_THAT(missing.output, !Catch::Contains("formed anew"));
  const auto none = troupe_run({"--", "/etc/passwd"});
  CHECK(none.exit_code == 126);
  CHECK_THAT(none.output, Catch::Contains("chmod +x"));
}

TEST_CASE("with restarts left the gang is formed anew, and says so", "[launch]") {
  const TemporaryFolder folder;
  const auto done = troupe_run({"-n", "2", "--max-restarts", "2", "--log-dir", folder.path(),
                                "--tee", "--", "sh", "-c",
                                "echo attempt $TORCHELASTIC_RESTART_COUNT; "
                                "[ $RANK != 1 -o $TORCHELASTIC_RESTART_COUNT -ge 2 ]"});
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("the gang is formed anew (restart 1 of 2)"));
  CHECK_THAT(done.output, Catch::Contains("the gang is formed anew (restart 2 of 2)"));
  CHECK_THAT(done.output, Catch::Contains("[1] attempt 2\n"));
  CHECK(content(folder.path() + "/rank-1.log") == "attempt 0\n");
  CHECK(content(folder.path() + "/restart-2/rank-0.log") == "attempt 2\n");
}

TEST_CASE("a run that has failed says how many of its restarts are used up", "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json";
  const auto failed =
      troupe_run({"--max-restarts", "1", "--summary", summary, "--", "sh", "-c", "exit 4"});
  CHECK(failed.exit_code == 4);
  CHECK_THAT(failed.output, Catch::Contains("restart 1 of 1") &&
                                Catch::Contains(" s and 1 of 1 restarts, rank 0 on node "));
  const auto written = nlohmann::json::parse(content(summary));
  CHECK(written.at("restarts") == 1);
  CHECK(written.at("max_restarts") == 1);
  const auto once = troupe_run({"--", "sh", "-c", "exit 4"});
  CHECK_THAT(once.output, !Catch::Contains("restart"));
}

TEST_CASE("output goes to files, to the terminal, or only rank 0's", "[launch]") {
  const TemporaryFolder folder;
  const auto files = troupe_run({"-n", "2", "--log-dir", folder.path() + "/a/b", "--", "sh", "-c",
                                 "echo out $RANK; echo err $RANK >&2"});
  CHECK(files.exit_code == 0);
  CHECK_THAT(files.output, !Catch::Contains("[0]"));
  CHECK_THAT(content(folder.path() + "/a/b/rank-1.log"), Catch::Contains("out 1\n"));
  CHECK_THAT(content(folder.path() + "/a/b/rank-1.log"), Catch::Contains("err 1\n"));
  const auto quiet = troupe_run({"-n", "2", "--quiet", "--", "sh", "-c", "echo out $RANK"});
  CHECK_THAT(quiet.output, Catch::Contains("[0] out 0\n") && !Catch::Contains("[1]"));
  CHECK_THAT(quiet.output, !Catch::Contains("ended well"));
  const auto refused = troupe_run({"--log-dir", "/proc/no", "--", "true"});
  CHECK(refused.exit_code == 125);
  CHECK_THAT(refused.output, Catch::Contains("--log-dir"));
}

TEST_CASE("ranks have the environment of the command, and what --env says", "[launch]") {
  const auto done = troupe_run({"--env", "A=1", "--env", "B", "--env", "OMP_NUM_THREADS=7", "--",
                                "sh", "-c", "echo $A $B $C $OMP_NUM_THREADS; env | grep ^TROUPE_"},
                               {"B=two words", "C=three"});
  CHECK_THAT(done.output, Catch::Contains("[0] 1 two words three 7\n"));
  CHECK_THAT(done.output, !Catch::Contains("[0] TROUPE_"));
  CHECK_THAT(troupe_run({"--env", "A=1", "sh", "-c", "echo A is $A"}).output,
             Catch::Contains("[0] A is 1\n"));
  // The number of threads is the user's, as torchrun has it, and else that of the rank's CPUs.
  const std::vector<std::string> threads{"sh", "-c", "echo $OMP_NUM_THREADS threads"};
  CHECK_THAT(troupe_run(threads, {"OMP_NUM_THREADS=9"}).output, Catch::Contains("[0] 9 threads\n"));
  CHECK_THAT(troupe_run(threads, {"OMP_NUM_THREADS="}).output,
             Catch::Contains(" threads\n") && !Catch::Contains("[0]  threads\n"));
  const auto refused = troupe_run({"--env", "NOT_SET_HERE", "--", "true"});
  CHECK(refused.exit_code == 125);
  CHECK_THAT(refused.output, Catch::Contains("NAME=VALUE"));
}

TEST_CASE("SIGINT ends all ranks, a time limit too", "[launch]") {
  Child child({TROUPE_PROGRAM, "run", "-n", "2", "--", "sh", "-c", "echo $$; exec sleep 600"},
              kNoCluster);
  child.wait_for_output("[0] ");
  child.wait_for_output("[1] ");
  child.signal(SIGINT);
  const auto status = child.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 130);
  CHECK_THAT(child.output(), Catch::Contains("SIGINT ended all ranks"));
  for (const auto* rank : {"[0]", "[1]"}) CHECK_FALSE(is_alive(number_after(child.output(), rank)));

  const auto late = troupe_run({"--timeout", "0.5", "--", "sleep", "60"});
  CHECK(late.exit_code == 124);
  CHECK_THAT(late.output, Catch::Contains("--timeout ended all ranks after"));
}

TEST_CASE("what rank 0 leaves as its result comes back, and how it ended as JSON", "[launch]") {
  const TemporaryFolder folder;
  const auto result = folder.path() + "/result", summary = folder.path() + "/summary.json";
  const auto done = troupe_run({"-n", "2", "--result", result, "--summary", summary, "--", "sh",
                                "-c", "[ $RANK = 1 ] || printf 'a\\0b' > $TROUPE_RESULT_FILE"});
  CHECK(done.exit_code == 0);
  CHECK(content(result) == std::string("a\0b", 3));
  const auto told = json::parse(content(summary));
  CHECK(told.at("status") == 0);
  CHECK(told.at("ranks") == 2);
  troupe_run({"-n", "2", "--summary", summary, "--", "sh", "-c", "echo why; exit $((RANK * 5))"});
  const auto failure = json::parse(content(summary)).at("failure");
  CHECK(failure.at("rank") == 1);
  CHECK(failure.at("exit_code") == 5);
  CHECK(failure.at("last_lines") == json{"why"});
}

TEST_CASE("what an earlier run has left is never taken for this run's", "[launch]") {
  const TemporaryFolder folder;
  const auto result = folder.path() + "/result", summary = folder.path() + "/summary.json";
  for (const auto& file : {result, summary}) std::ofstream(file) << "old";
  const auto look = "[ ! -e " + summary + " ] && cat $TROUPE_ATTACHED_FILE";
  const auto done = troupe_run(
      {"--attach", result, "--result", result, "--summary", summary, "--", "sh", "-c", look});
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("[0] old\n"));
  CHECK_FALSE(std::filesystem::exists(result));
  CHECK(json::parse(content(summary)).at("status") == 0);
}

TEST_CASE("the traceback that a rank leaves where PyTorch leaves it is told", "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json", names = folder.path() + "/names-";
  // As torch.distributed.elastic.multiprocessing.errors.record does.
  const auto program =
      "echo noise; echo $TORCHELASTIC_ERROR_FILE > " + names +
      "$RANK; [ $RANK = 1 ] || exec sleep 600; until [ -s " + names +
      "0 ]; do sleep 0.02; done; printf '%s' '{\"message\": {\"message\": \"ValueError: no\", "
      "\"extraInfo\": {\"py_callstack\": \"Traceback:\\n  in f\\nValueError: no\\n\"}}}' > "
      "$TORCHELASTIC_ERROR_FILE; exit 3";
  const auto done = troupe_run({"-n", "2", "--summary", summary, "--", "sh", "-c", program},
                               {"TORCHELASTIC_ERROR_FILE=/an/outer/one"});
  CHECK(done.exit_code == 3);
  CHECK_THAT(done.output,
             Catch::Contains("the other one was ended; its traceback:\n    Traceback:\n"
                             "      in f\n    ValueError: no\n"));
  const auto failure = json::parse(content(summary)).at("failure");
  CHECK(failure.at("traceback") == "Traceback:\n  in f\nValueError: no");
  CHECK(failure.at("last_lines") == json{"noise"});
  const auto one = content(names + "0"), other = content(names + "1");
  CHECK(one != other);
  for (const auto& file : {one, other}) {
    CHECK_THAT(file, Catch::StartsWith("/") && !Catch::Contains("outer"));
    CHECK_FALSE(std::filesystem::exists(std::filesystem::path(file).parent_path()));
  }
}

TEST_CASE("what torchrun leaves to the user is the user's", "[launch]") {
  const auto program = "echo $TORCH_NCCL_ASYNC_ERROR_HANDLING $TORCHELASTIC_ERROR_FILE.";
  CHECK_THAT(troupe_run({"--env", "TORCHELASTIC_ERROR_FILE=x", "--", "sh", "-c", program}).output,
             Catch::Contains("[0] 1 x.\n"));
  CHECK_THAT(troupe_run({"--", "sh", "-c", program}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}).output,
             Catch::Contains("[0] 3 /"));
  // No folder for it: the program runs all the same.
  for (const auto* temporary : {"TMPDIR=/proc", "TMPDIR=/none"})
    CHECK_THAT(troupe_run({"--", "sh", "-c", program}, {temporary}).output,
               Catch::Contains("[0] 1 .\n"));
}

TEST_CASE("who reads the output and goes ends the ranks", "[launch]") {
  const auto done = run({"sh", "-c",
                         std::string(TROUPE_PROGRAM) +
                             " run -- sh -c 'echo pid $$; while :; do echo x; done' | head -n 1"},
                        kNoCluster);
  CHECK(eventually([pid = number_after(done.output, "pid")] { return !is_alive(pid); }));
}

TEST_CASE("what no rank can be is refused before anything starts", "[launch]") {
  const auto refused = [](std::vector<std::string> arguments) {
    const auto done = troupe_run(std::move(arguments));
    CHECK(done.exit_code != 0);
    return done.output;
  };
  CHECK_THAT(refused({"-n", "0", "--", "true"}), Catch::Contains("give 4, or 2:8"));
  CHECK_THAT(refused({"--ranks"}), Catch::Contains("--ranks"));
  CHECK_THAT(refused({}), Catch::Contains("what is it to run?"));
  CHECK_THAT(refused({"--wrong", "--", "true"}), Catch::Contains("there is no option '--wrong'"));
  CHECK_THAT(refused({"-n", "gpus", "--gpus", "1", "--", "true"}), Catch::Contains("GPU"));
  CHECK_THAT(refused({"-n", "3", "--per-node", "2", "--", "true"}),
             Catch::Contains("multiple of 2"));
  CHECK_THAT(refused({"--gpus", "64", "--", "true"}), Catch::Contains("gpu"));
  CHECK_THAT(refused({"--cpus", "100000", "--", "true"}),
             Catch::Contains("a rank is to have 100000 CPUs, and this machine has"));
}

TEST_CASE("without a cluster an elastic gang is as large as may be, on one node", "[launch]") {
  const auto sizes = [](std::vector<std::string> options) {
    options.insert(options.end(),
                   {"--", "sh", "-c", "echo $RANK of $WORLD_SIZE, $LOCAL_WORLD_SIZE here"});
    const auto done = troupe_run(std::move(options));
    CHECK(done.exit_code == 0);
    CHECK_THAT(done.output, Catch::Contains(" on 1 node ended well"));
    return done.output;
  };
  CHECK_THAT(sizes({"-n", "2:8"}), Catch::Contains("[7] 7 of 8, 8 here\n"));
  CHECK_THAT(sizes({"-n", "2:8", "--cpus", "1"}), Catch::Contains("[7] 7 of 8, 8 here\n"));
  CHECK_THAT(sizes({"--per-node", "3"}), Catch::Contains("[2] 2 of 3, 3 here\n"));
  CHECK_THAT(sizes({"-n", "3", "--per-node", "3"}), Catch::Contains("[2] 2 of 3, 3 here\n"));
  CHECK_THAT(sizes({"-n", "2:8", "--per-node", "3"}), Catch::Contains("[2] 2 of 3, 3 here\n"));
}

TEST_CASE("ranks that need other nodes are refused without a cluster, with what to give instead",
          "[launch][refusal]") {
  const auto refused = [](std::vector<std::string> options) {
    options.insert(options.end(), {"--", "true"});
    const auto done = troupe_run(std::move(options));
    CHECK(done.exit_code == 125);
    return done.output;
  };
  CHECK_THAT(refused({"-n", "4", "--per-node", "2"}),
             Catch::Contains("4 ranks with 2 on each node (--per-node) need more than one node, "
                             "and without a cluster this machine is the only one: give --per-node "
                             "4, or --address of a cluster"));
  CHECK_THAT(refused({"-n", "4:8", "--per-node", "3"}), Catch::Contains("give --per-node 6, or"));
  CHECK_THAT(refused({"-n", "2:8", "--strategy", "strict-spread"}),
             Catch::Contains("2 ranks on nodes of their own (--strategy strict-spread)"));
  CHECK_THAT(refused({"-n", "2:8", "--gpus", "64"}), Catch::Contains("gpu 64"));
}

TEST_CASE("a reader that stands still does not hold up the end of a run", "[launch]") {
  const TemporaryFolder folder;
  // The reader waits, for 50 s at most, for the end of the run.
  const auto done =
      run({"sh", "-c",
           "cd \"$1\"; { \"$0\" run --timeout 1 --grace 0.5 -- yes 2> err; echo $? > code; } | "
           "{ i=0; until [ -s code ] || [ $i = 500 ]; do sleep 0.1; i=$((i+1)); done; "
           "[ ! -s code ] || touch ended; }",
           TROUPE_PROGRAM, folder.path()},
          kNoCluster);
  CHECK(done.exit_code == 0);
  CHECK(content(folder.path() + "/code") == "124\n");
  CHECK(std::filesystem::exists(folder.path() + "/ended"));
}

TEST_CASE("an output that cannot be written ends the ranks, and says so", "[launch]") {
  const TemporaryFolder folder;
  const auto done =
      run({"sh", "-c",
           "exec \"$0\" run --grace 5 -n 2 -- sh -c "
           "'trap \"echo told > $1/$RANK; exit\" TERM; echo x; while :; do sleep 0.1; "
           "done' sh \"$1\" > /dev/full",
           TROUPE_PROGRAM, folder.path()},
          kNoCluster);
  CHECK(done.exit_code == 125);
  CHECK_THAT(done.output, Catch::Contains("a standard output that cannot be written"));
  CHECK(content(folder.path() + "/0") == "told\n");
  CHECK(content(folder.path() + "/1") == "told\n");
}

TEST_CASE("a standard error that cannot be written leaves the exit status as it is", "[launch]") {
  for (const std::string to : {"2> /dev/full", "2>&-"}) {
    for (const std::string more : {"", "--max-restarts 1"}) {
      const auto done =
          run({"sh", "-c", "exec \"$0\" run " + more + " -- sh -c 'exit 5' " + to, TROUPE_PROGRAM},
              kNoCluster);
      INFO(to << " " << more);
      CHECK(done.exit_code == 5);
    }
  }
}

TEST_CASE("a run that nohup started outlives its terminal", "[launch]") {
  const auto done = run({"sh", "-c",
                         "trap '' HUP; \"$0\" run -- sh -c 'echo begun; sleep 1; echo done' & "
                         "sleep 0.5; kill -HUP $!; wait $!; echo code $?",
                         TROUPE_PROGRAM},
                        kNoCluster);
  CHECK_THAT(done.output, Catch::Contains("[0] done\n") && Catch::Contains("code 0\n"));
}

TEST_CASE("a run that is refused has a summary, and one that could not have it is refused",
          "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json", mark = folder.path() + "/mark";
  const auto refused = troupe_run({"-n", "gpus", "--summary", summary, "--", "touch", mark});
  CHECK(refused.exit_code == 125);
  const auto told = json::parse(content(summary));
  CHECK(told.at("status") == 125);
  CHECK_THAT(told.at("failure").at("why").get<std::string>(), Catch::Contains("-n gpus"));
  for (const auto* option : {"--summary", "--result"}) {
    const auto lost = troupe_run({option, folder.path() + "/none/file", "--", "touch", mark});
    CHECK(lost.exit_code == 125);
    CHECK_THAT(lost.output, Catch::Contains(option) && Catch::Contains("No such file"));
    CHECK(troupe_run({option, folder.path(), "--", "touch", mark}).exit_code == 125);
  }
  CHECK(!std::filesystem::exists(mark));
}

TEST_CASE("a result that is no regular file is refused, and no reason to hang", "[launch]") {
  const TemporaryFolder folder;
  const auto result = folder.path() + "/result";
  for (const auto& [leave, what] :
       {std::pair("mkfifo $TROUPE_RESULT_FILE", "it is a pipe"),
        {"mkdir $TROUPE_RESULT_FILE", "it is a folder"},
        {"truncate -s 20G $TROUPE_RESULT_FILE", "it holds more than 512"}}) {
    const auto done = troupe_run({"--result", result, "--", "sh", "-c", leave});
    CHECK(done.exit_code == 125);
    CHECK_THAT(done.output, Catch::Contains("--result") && Catch::Contains(what));
  }
  const auto failed =
      troupe_run({"--result", result, "--", "sh", "-c", "mkdir $TROUPE_RESULT_FILE; exit 6"});
  CHECK(failed.exit_code == 6);
  CHECK(!std::filesystem::exists(result));
}

TEST_CASE("an amount that is no number is refused at its option", "[launch]") {
  for (const auto* option : {"--cpus", "--gpus", "--grace", "--memory-gb", "--timeout"}) {
    for (const auto* value : {"nan", "-inf", "inf"}) {
      const auto done = troupe_run({option, value, "--", "true"});
      CHECK(done.exit_code == 2);
      CHECK_THAT(done.output, Catch::Contains(option) && Catch::Contains("is not a number"));
    }
  }
}
