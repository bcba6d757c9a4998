#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"

using namespace troupe::test;
using Catch::Contains;

/// Several sweep files that have one storage.
namespace sweep_storage_test {
namespace {

/// Two files of one folder, with the same space and other programs.
class TwoSweeps {
 public:
  TwoSweeps() {
    for (const std::string name : {"one", "two"}) {
      std::ofstream(folder_.path() + "/" + name + ".sh")
          << "echo \"troupe: {\\\"loss\\\": $1}\"; [ -e end ] || exec sleep 100\n";
      std::ofstream(file(name)) << "command = [\"sh\", \"" << name << ".sh\", \"{x}\"]\n"
                                << "metric = \"loss\"\ngrace = 1\n[space]\nx = { grid = [3] }\n";
    }
  }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name + ".toml"; }
  std::string run_folder(int number) const {
    return folder_.path() + "/troupe-runs/run-" + std::to_string(number);
  }
  Finished tune(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "tune"});
    return run(std::move(arguments), kNoClusterForSweeps, std::chrono::seconds(90));
  }
  /// Returns what a run printed that Ctrl-C has ended while its trial ran.
  std::string interrupted(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "tune"});
    Child child(std::move(arguments), kNoClusterForSweeps);
    child.wait_for_output("trial 0 started");
    child.signal(SIGINT);
    CHECK(exit_code_of(child) == 128 + SIGINT);
    return child.output();
  }
  /// From now on, trials end at once.
  void let_end() const { std::ofstream(folder_.path() + "/end") << "\n"; }
  std::string recorded_file(int number) const {
    std::ifstream in(run_folder(number) + "/program.json");
    return nlohmann::json::parse(in).at("file");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a sweep file stands for its own last run where several have one storage", "[sweep]") {
  const TwoSweeps sweeps;
  const auto hint = [&](const std::string& name) {
    return "to go on with it: troupe tune resume " + sweeps.file(name) + "\n";
  };
  CHECK_THAT(sweeps.interrupted({"run", sweeps.file("one")}), Contains(hint("one")));
  const auto second = sweeps.interrupted({"run", sweeps.file("two")});
  CHECK_THAT(second, Contains(hint("two")) && !Contains("is not over"));
  CHECK_THAT(sweeps.tune({"show", sweeps.file("one")}).output,
             Contains(hint("one")) && Contains("results: " + sweeps.run_folder(1) + "\n"));
  CHECK(sweeps.tune({"report", sweeps.file("one")}).output ==
        sweeps.run_folder(1) + "/report.html\n");
  sweeps.let_end();
  const auto resumed = sweeps.tune({"resume", sweeps.file("one")});
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.output,
             Contains("results: " + sweeps.run_folder(1) + "\n") && !Contains("note: command was"));
  CHECK(sweeps.recorded_file(2) == "two.toml");
  CHECK_THAT(sweeps.tune({"show", sweeps.file("two")}).output, Contains(hint("two")));
}

TEST_CASE("a sweep file without a run of its own is told whose runs its storage has", "[sweep]") {
  const TwoSweeps sweeps;
  sweeps.interrupted({"run", sweeps.file("one")});
  const auto what = GENERATE("show", "report", "resume");
  const auto refused = sweeps.tune({what, sweeps.file("two")});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Contains("belongs to 'two.toml': those in it belong to 'one.toml' "
                                      "(the last is run-1)") &&
                                 Contains("`--run " + sweeps.run_folder(1) + "`"));

  sweeps.let_end();
  const auto taken = sweeps.tune({"resume", sweeps.file("two"), "--run", sweeps.run_folder(1)});
  CHECK(taken.exit_code == 0);
  CHECK_THAT(taken.output, Contains("note: the sweep file was \"one.toml\" when "));
  CHECK(sweeps.recorded_file(1) == "two.toml");
}

TEST_CASE("a run that names no sweep file is that of a file with its storage and no other run",
          "[sweep]") {
  const TwoSweeps sweeps;
  sweeps.interrupted({"run", sweeps.file("one")});
  sweeps.interrupted({"run", sweeps.file("two")});
  std::ofstream(sweeps.run_folder(2) + "/program.json") << "{\"command\": [\"sh\"]}\n";
  CHECK_THAT(sweeps.tune({"show", sweeps.file("two")}).output,
             Contains("results: " + sweeps.run_folder(2) + "\n"));
  CHECK_THAT(sweeps.tune({"show", sweeps.file("one")}).output,
             Contains("results: " + sweeps.run_folder(1) + "\n"));
}

}  // namespace sweep_storage_test
