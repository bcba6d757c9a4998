#include <catch2/catch.hpp>

#include "inspect/texts.hpp"

using namespace troupe::test;

/// Commands that stand behind others, as `troupe job submit`, and what is said where none does.
namespace {

Finished called(const std::string& path, const std::vector<std::string>& more = {}) {
  return run(command_line(path, more));
}

}  // namespace

TEST_CASE("a group without a command names its commands", "[cli][refusal]") {
  auto groups = all_groups();
  groups.push_back("");  // the program itself
  for (const auto& group : groups) {
    const auto refused = called(group);
    INFO(refused.output);
    CHECK(refused.exit_code == 2);
    const auto path = group.empty() ? "troupe" : "troupe " + group;
    CHECK_THAT(refused.output, Catch::StartsWith(path + ": which command?"));
    CHECK_THAT(refused.output, Catch::Contains("`" + path + " --help`"));
    for (const auto& command : commands_of(group))
      CHECK_THAT(refused.output, Catch::Contains("\n  " + command + " "));
  }
}

TEST_CASE("a command that there is not is refused with those that there are", "[cli][refusal]") {
  const auto far = called("job nonsense");
  CHECK(far.exit_code == 2);
  CHECK_THAT(far.output, Catch::StartsWith("troupe job: there is no command 'nonsense', only "
                                           "submit, list, status, logs, stop and forget\n"));
  const auto near = called("job sumbit", {"--", "ls"});
  CHECK(near.exit_code == 2);
  CHECK_THAT(near.output, Catch::Contains("; did you mean 'submit'?\n"));
  CHECK_THAT(called("stauts").output, Catch::Contains("; did you mean 'status'?\n"));
  const auto option = called("job --nonsense");
  CHECK(option.exit_code == 2);
  CHECK_THAT(option.output, Catch::StartsWith("troupe job: there is no option '--nonsense'\n"));
  CHECK(called("job --help").exit_code == 0);
}

TEST_CASE("a wrong option is told with the command whose help has the right ones",
          "[cli][refusal]") {
  const auto refused = called("job stop", {"night", "--nonsense"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.output,
             Catch::Contains("--nonsense") && Catch::Contains("`troupe job stop --help` has more"));
}

TEST_CASE("an option that there is not is refused with the one that may be meant",
          "[cli][refusal]") {
  CHECK_THAT(called("job stop", {"night", "--grase", "3"}).output,
             Catch::StartsWith("troupe job stop: there is no option '--grase'; did you mean "
                               "'--grace'?\n"));
  CHECK_THAT(called("worker", {"--num-cpus=2"}).output,
             Catch::StartsWith("troupe worker: there is no option '--num-cpus'; it is '--cpus' "
                               "here\n"));
  CHECK_THAT(called("run", {"--nproc-per-node", "3", "--", "true"}).output,
             Catch::StartsWith("troupe run: there is no option '--nproc-per-node'; it is '-n' "
                               "here\n"));
}

TEST_CASE("an option of torchrun, mpirun or Ray is refused with what stands in its place",
          "[cli][refusal]") {
  const auto told = [](const std::string& path, const std::string& option) {
    const auto line = called(path, {option, "1", "--", "true"}).output;
    return line.substr(0, line.find('\n'));
  };
  const std::string run = "troupe run: there is no option ",
                    submit = "troupe job submit: there is no ";
  CHECK(told("run", "--nproc_per_node") == run + "'--nproc_per_node'; it is '-n' here");
  CHECK_THAT(told("run", "-np"), Catch::Contains("there is no option '-np'; it is '-n' here"));
  CHECK(told("run", "--nnodes") ==
        run + "'--nnodes'; '-n' counts the ranks of all nodes, '--per-node' those of one");
  CHECK(told("run", "--rdzv_endpoint") ==
        run +
            "'--rdzv_endpoint'; it is not needed here: rank 0's node has a free port, which all "
            "ranks are told");
  CHECK_THAT(told("run", "--hostfile"), Catch::Contains("`troupe worker` on each machine"));
  CHECK(told("run", "-x") == run + "'-x'; it is '--env' here");
  CHECK(told("job submit", "--working-dir") ==
        submit + "option '--working-dir'; it is '--workdir' here");
  CHECK_THAT(told("job submit", "--runtime-env"), Catch::Contains("'--workdir' and '--env'"));
  CHECK_THAT(told("job submit", "--no-wait"), Catch::Contains("unless '--wait' is said"));
  // Of one command alone.
  CHECK_THAT(told("worker", "--nnodes"), !Catch::Contains("counts the ranks"));
}

TEST_CASE("troupe help prints the help of a command, and of the program without one", "[cli]") {
  for (const std::string path : {"", "run", "job", "job submit"}) {
    INFO(path);
    const auto helped = run(command_line("help " + path, {}));
    CHECK(helped.exit_code == 0);
    CHECK(helped.output == called(path, {"--help"}).output);
  }
  CHECK(run(command_line("help --man run", {})).output == run(command_line("man run", {})).output);
  const auto refused = called("help job", {"sumbit"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.output, Catch::Contains("did you mean 'submit'?"));
}
