#include <fstream>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "sweep/file/sweep_file.hpp"
#include "sweep_support.hpp"

using namespace troupe::test;
using Catch::Contains;

/// Sweeps with several objectives, with constraints, with conditions between fields, and with
/// repeated trials.
namespace {

/// A sweep over a shell script that gets what `command` says.
class OwnSweep : public Sweep {
 public:
  OwnSweep(const std::string& script, const std::string& file) : Sweep(script) {
    std::ofstream(folder() + "/sweep.toml") << file;
  }
};

std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/sweep.toml";
  std::ofstream(file) << text;
  try {
    troupe::launch::read_sweep(file);
  } catch (const std::exception& refused) {
    return std::string(refused.what()).substr(file.size());
  }
  return "not refused";
}

std::string with_objectives(const std::string& lines) {
  return "command = [\"true\", \"{x}\"]\n" + lines +
         "\ntrials = 2\n[space]\nx = { uniform = [0, 1] }\n";
}

std::string with_space(const std::string& space) {
  return "command = [\"true\"]\nmetric = \"loss\"\ntrials = 2\n[space]\n" + space + "\n";
}

constexpr const char* kConditional = R"(
command = ["sh", "trial.sh", "{optimizer}", "--momentum={momentum}", "--decay={decay}"]
metric = "loss"
trials = 12
seed = 3
storage = "runs"
first = [{ optimizer = "adam" }, { optimizer = "sgd", momentum = 0.5, decay = 2 }]

[space]
optimizer = { choice = ["sgd", "adam", "lion"] }
momentum = { choice = [0.25, 0.5], when = { optimizer = ["sgd", "lion"] } }
decay = { choice = [1, 2], when = { optimizer = "sgd", momentum = 0.5 } }

[env]
MOMENTUM = "{momentum}"
)";

}  // namespace

TEST_CASE("a sweep with several objectives has a front of the trials that keep to its constraints",
          "[sweep]") {
  const OwnSweep sweep(R"(echo "troupe: {\"loss\": $1, \"speed\": $1, \"memory\": $1}")", R"(
command = ["sh", "trial.sh", "{x}"]
objectives = [{ metric = "loss" }, { metric = "speed", mode = "max" }]
constraints = [{ metric = "memory", at_most = 2 }, { metric = "memory", at_least = 0.5 }]
storage = "runs"
trials = 8
seed = 1
first = [{ x = 1 }, { x = 2 }, { x = 3 }]

[space]
x = { integer = [1, 3] }

[searcher]
type = "nsga2"
population = 4
)");
  CHECK_THAT(
      sweep.tune("check").output,
      Contains("is a sweep over 1 field, for the least loss and the greatest speed, 8 trials"));
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  const auto summary = sweep.summary();
  REQUIRE(summary.at("pareto").size() >= 2);
  for (const auto& id : summary.at("pareto"))
    CHECK(summary.at("trials").at(id.get<std::size_t>()).at("config").at("x") <= 2);
  CHECK_THAT(sweep.tune("show").output, Contains("Pareto front: "));
}

TEST_CASE("objectives and constraints that cannot be are refused with their place", "[sweep]") {
  CHECK_THAT(refusal(with_objectives(
                 "metric = \"loss\"\nobjectives = [{ metric = \"a\" }, { metric = \"b\" }]")),
             Contains(":3:14: objectives cannot be: ") &&
                 Contains("metric is 'loss', and objectives names 2"));
  CHECK_THAT(refusal(with_objectives(
                 "mode = \"max\"\nobjectives = [{ metric = \"a\" }, { metric = \"b\" }]")),
             Contains("mode stands beside metric"));
  CHECK_THAT(refusal(with_objectives("objectives = [{ metric = \"a\", mode = \"least\" }]")),
             Contains("mode is \"min\" or \"max\""));
  CHECK_THAT(refusal(with_objectives("objectives = [{ metrik = \"a\" }, { metric = \"b\" }]")),
             Contains("metrik"));
  CHECK_THAT(refusal(with_objectives("objectives = [{ metric = \"a\" }, { metric = \"a\" }]")),
             Contains("'a' stands twice in objectives"));
  CHECK_THAT(refusal(with_objectives("objective = [{ metric = \"a\" }]")), Contains("objectives"));
  CHECK_THAT(
      refusal(with_objectives("metric = \"a\"\nconstraints = [{ metric = \"b\", at_most = 1 }]")),
      Contains("constraints are those of a run with several objectives"));
  const std::string two = "objectives = [{ metric = \"a\" }, { metric = \"b\" }]\n";
  CHECK_THAT(refusal(with_objectives(two + "constraints = [{ metric = \"c\" }]")),
             Contains("needs one limit, at_most or at_least"));
  CHECK_THAT(refusal(with_objectives(
                 two + "constraints = [{ metric = \"c\", at_most = 1, at_least = 2 }]")),
             Contains("needs one limit, at_most or at_least"));
  CHECK_THAT(
      refusal(with_objectives(
          two +
          "constraints = [{ metric = \"c\", at_most = 1 }, { metric = \"c\", at_least = 2 }]")),
      Contains("no 'c' keeps to both of its limits"));
}

TEST_CASE("a field with a condition is given to the trials that have it, and to no others",
          "[sweep]") {
  const OwnSweep sweep(
      R"(echo "$#:${MOMENTUM-unset}:$TROUPE_TRIAL_CONFIG" > "$TROUPE_CHECKPOINT_DIR/told"
echo "troupe: {\"loss\": $#}")",
      kConditional);
  const auto checked = sweep.tune("check");
  INFO(checked.output);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.output,
             Contains("  sh trial.sh adam\n") &&
                 Contains("  MOMENTUM=0.5 sh trial.sh sgd --momentum=0.5 --decay=2\n"));
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  std::set<std::string> seen;
  const auto summary = sweep.summary();
  for (const auto& trial : summary.at("trials")) {
    const auto& config = trial.at("config");
    const auto number = std::to_string(trial.at("trial").get<int>());
    const auto told = sweep.content("runs/run-1/trials/" + number + "/told");
    CAPTURE(number, config.dump(), told);
    const std::string optimizer = config.at("optimizer");
    seen.insert(optimizer);
    CHECK(config.contains("momentum") == (optimizer != "adam"));
    CHECK_THAT(told, Catch::StartsWith(std::to_string(config.size()) + ":"));
    CHECK((told.find(":unset:") != std::string::npos) == (optimizer == "adam"));
    CHECK((told.find("\"momentum\"") != std::string::npos) == (optimizer != "adam"));
    CHECK(config.contains("decay") == (optimizer == "sgd" && config.at("momentum") == 0.5));
  }
  CHECK(seen.size() == 3);
  CHECK(summary.at("trials").at(1).at("config").at("decay") == 2);
}

TEST_CASE("conditions that cannot be are refused with their place", "[sweep]") {
  const std::string optimizer = "o = { choice = [\"a\", \"b\"] }\n";
  CHECK_THAT(refusal(with_space("m = { uniform = [0, 1], when = { o = \"a\" } }\n" + optimizer)),
             Contains("is no field that stands before this one"));
  CHECK_THAT(refusal(with_space(optimizer + "m = { uniform = [0, 1], when = { o = \"c\" } }")),
             Contains(":6:") && Contains("is never c: its domain has no such value"));
  CHECK_THAT(refusal(with_space(optimizer + "m = { uniform = [0, 1], when = {} }")),
             Contains("when names no field"));
  CHECK_THAT(refusal(with_space(optimizer + "m = { uniform = [0, 1], when = { o = [] } }")),
             Contains("is a value of that field, or a list of them"));
  CHECK_THAT(refusal("command = [\"{m}\"]\nmetric = \"loss\"\ntrials = 2\n[space]\n" + optimizer +
                     "m = { choice = [\"true\"], when = { o = \"a\" } }\n"),
             Contains("names a field with a condition"));
  CHECK_THAT(
      refusal(
          "command = [\"true\"]\nmetric = \"loss\"\ntrials = 2\nfirst = [{ o = \"b\", m = 0.5 }]\n"
          "[space]\n" +
          optimizer + "m = { uniform = [0, 1], when = { o = \"a\" } }\n"),
      Contains("has m, whose condition does not hold there"));
  const OwnSweep population(
      "true", "command = [\"true\"]\nmetric = \"loss\"\ntrials = 4\n[space]\n" + optimizer +
                  "m = { uniform = [0, 1], when = { o = \"a\" } }\n"
                  "[scheduler]\ntype = \"pbt\"\ninterval = 1\nmax_t = 5\n");
  const auto checked = population.tune("check");
  CHECK(checked.exit_code == 1);
  CHECK_THAT(checked.output, Contains("knows nothing of conditions and functions"));
}

TEST_CASE("a sweep may run each configuration several times, and propose them in batches",
          "[sweep]") {
  const OwnSweep sweep(R"(echo "troupe: {\"loss\": $1}")", R"(
command = ["sh", "trial.sh", "{x}"]
metric = "loss"
trials = 6
storage = "runs"
[space]
x = { uniform = [0.0, 1.0] }
[searcher]
type = "tpe"
repeats = 3
batch = 2
)");
  const auto checked = sweep.tune("check");
  INFO(checked.output);
  CHECK(checked.exit_code == 0);
  CHECK(sweep.tune("run").exit_code == 0);
  std::multiset<double> values;
  const auto summary = sweep.summary();
  for (const auto& trial : summary.at("trials"))
    values.insert(trial.at("config").at("x").get<double>());
  REQUIRE(values.size() == 6);
  CHECK(values.count(*values.begin()) == 3);
  CHECK(values.count(*values.rbegin()) == 3);
  const std::string grid =
      "command = [\"true\"]\nmetric = \"loss\"\n[space]\nx = { grid = [1, 2] }\n";
  CHECK_THAT(refusal(grid + "[searcher]\ntype = \"grid\"\nrepeats = 2\n"),
             Contains("samples = 3 runs each point of a grid so often"));
  CHECK_THAT(refusal(grid + "[searcher]\ntype = \"random\"\nbatch = 2\n"),
             Contains("trials is missing: searcher.repeats and searcher.batch need it"));
}
