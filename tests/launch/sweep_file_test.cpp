#include "sweep/file/sweep_file.hpp"

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/child.hpp"
#include "sweep/fields.hpp"
#include "sweep/sweep.hpp"

using namespace troupe::launch;
using troupe::test::TemporaryFolder;

namespace {

const TemporaryFolder& folder() {
  static const TemporaryFolder folder;
  return folder;
}

std::string written(const std::string& text) {
  const auto file = folder().path() + "/sweep.toml";
  std::ofstream(file) << text;
  return file;
}

/// A sweep that can be, with `more` of it.
std::string sweep_with(const std::string& more,
                       const std::string& space = "lr = { loguniform = [1e-4, 1.0] }") {
  return "command = [\"true\", \"{lr}\"]\nmetric = \"loss\"\ntrials = 3\n" + more + "\n[space]\n" +
         space + "\n";
}

std::string refusal(const std::string& text) {
  try {
    read_sweep(written(text));
  } catch (const std::exception& refused) {
    return refused.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("a sweep is read from a file", "[sweep]") {
  const auto sweep = read_sweep(written(R"(
command = ["python", "train.py", "--lr={lr}", "{{}}"]
metric = "accuracy"
mode = "max"
trials = 20
storage = "out"
seed = 7
time_budget = 1.5
first = [{ lr = 0.1, batch = 32, layers = 2, drop = 0, kind = "b" }]

[space]
lr = { loguniform = [1e-4, 1.0] }
batch = { choice = [16, 32] }
layers = { integer = [1, 8], step = 1 }
drop = { uniform = [0, 0.5], step = 0.1 }
kind = { ordinal = ["a", "b"] }
epochs = 10

[scheduler]
type = "asha"
max_t = 27
eta = 3

[searcher]
type = "tpe"

[gang]
ranks = 2
cpus = 0.5

[reports]
pattern = 'acc=(?<accuracy>\S+)'

[env]
A = "1"
)"));
  CHECK(sweep.plan.trials == 20);
  CHECK(sweep.plan.objective.metric == "accuracy");
  CHECK(sweep.plan.objective.mode == troupe::tune::Max);
  CHECK(sweep.plan.storage == folder().path() + "/out");
  CHECK(sweep.plan.time_budget == std::chrono::milliseconds(1500));
  CHECK(sweep.plan.workers == 2);
  CHECK(sweep.each.cpus == 0.5);
  REQUIRE(sweep.plan.space.size() == 6);
  CHECK(sweep.plan.space[0].name == "lr");
  CHECK(sweep.plan.space[0].domain == troupe::tune::loguniform(1e-4, 1.0));
  CHECK(sweep.plan.space[5].domain == troupe::tune::Domain(10));
  REQUIRE(sweep.plan.first.size() == 1);
  CHECK(to_string(sweep.plan.first[0]) == "lr=0.1, batch=32, layers=2, drop=0, kind=b, epochs=10");
  CHECK(sweep.variables == Variables{{"A", "1"}});
  for (const auto& command : first_commands(sweep, 5)) {
    CHECK_THAT(command, Catch::StartsWith("python train.py --lr="));
    CHECK_THAT(command, Catch::EndsWith(" {}"));
  }
}

TEST_CASE("what is wrong in a sweep is named with its line and column", "[sweep]") {
  CHECK_THAT(
      refusal(sweep_with("max_failure = 1")),
      Catch::Contains("sweep.toml:4:1: there is no key max_failure; did you mean 'max_failures'?"));
  CHECK_THAT(refusal(sweep_with("seed = \"one\"")),
             Catch::Contains(":4:8: seed is an integer, at least 0"));
  CHECK_THAT(refusal(sweep_with("mode = \"least\"")),
             Catch::Contains(":4:8: mode is \"min\" or \"max\""));
  CHECK_THAT(refusal(sweep_with("seed = = 1")), Catch::Contains("sweep.toml:4:"));
  CHECK_THAT(refusal(sweep_with("mode = min")),
             Catch::Contains("sweep.toml:4:") && Catch::Contains("a text stands in quotes"));
  CHECK_THAT(refusal(sweep_with("[scheduler]\ntype = \"ahsa\"")),
             Catch::Contains(":5:8: scheduler.type is one of asha"));
  CHECK_THAT(refusal(sweep_with("[scheduler]\ntype = \"asha\"\nmaxt = 3")),
             Catch::Contains(":6:1: there is no key scheduler.maxt; did you mean 'max_t'?"));
  CHECK_THAT(refusal(sweep_with("[searcher]\ntype = \"tpa\"")),
             Catch::Contains("searcher.type is one of"));
  CHECK_THAT(refusal(sweep_with("[reports]\npattern = \"(\"")),
             Catch::Contains(":5:11: reports.pattern cannot be"));
  CHECK_THAT(refusal("metric = \"loss\"\n[space]\nlr = 1\n"),
             Catch::Contains("command is missing"));
  CHECK_THAT(refusal("command = [\"true\"]\n[space]\nlr = 1\n"),
             Catch::Contains("metric is missing"));
  CHECK_THAT(refusal("command = [\"true\"]\nmetric = \"loss\"\n"),
             Catch::Contains("space is missing"));
  CHECK_THAT(refusal("command = [\"true\"]\nmetrc = \"loss\"\n[space]\nlr = 1\n"),
             Catch::Contains(":2:1: there is no key metrc; did you mean 'metric'?"));
  CHECK_THAT(refusal("command = [\"{l}\"]\nmetric = \"loss\"\n[space]\nlr = 1\n"),
             Catch::Contains("{l} in '{l}' is no field of the space; did you mean 'lr'?"));
}

TEST_CASE("names and values that stand for something else, or for nothing, are refused",
          "[sweep]") {
  CHECK_THAT(refusal(sweep_with("", "lr = 1\ncheckpoint_dir = 2")),
             Catch::Contains(":7:18: space.checkpoint_dir is no name of a field, as "
                             "{checkpoint_dir} is the path"));
  CHECK_THAT(refusal(sweep_with("", "lr = 1\nconfig_file = \"a\"")),
             Catch::Contains(":7:15: space.config_file is no name of a field"));
  CHECK_THAT(refusal(sweep_with("", "lr = 1\n\"\" = 2")),
             Catch::Contains(":7:6: space.\"\" is no name of a field"));
  CHECK_THAT(refusal(sweep_with("", "lr = { choice = [\"a\\u0000\"] }")),
             Catch::Contains(":6:6: space.lr has a zero byte"));
  CHECK_THAT(refusal(sweep_with("[env]\n\"A=B\" = \"1\"")),
             Catch::Contains(":5:9: env.A=B is no name of a variable"));
  CHECK_THAT(refusal(sweep_with("[env]\n\"\" = \"1\"")),
             Catch::Contains(":5:6: env.\"\" is no name of a variable"));
  CHECK_THAT(refusal(sweep_with("[env]\nA = \"1\\u0000\"")),
             Catch::Contains(":5:5: env.A has a zero byte"));
  CHECK_THAT(refusal(sweep_with("time_budget = 1e300")),
             Catch::Contains(":4:15: time_budget is at most 1000000000"));
  const std::string rest = "\nmetric = \"loss\"\ntrials = 1\n[space]\nlr = 1\n";
  CHECK_THAT(refusal("command = [\"\"]" + rest),
             Catch::Contains(":1:12: command begins with an empty word"));
  CHECK_THAT(refusal("command = [\"a\", \"b\\u0000\"]" + rest),
             Catch::Contains(":1:17: command has a zero byte"));
  CHECK_THAT(refusal(sweep_with("[reports]\npattern = 'acc=(?<acc>.+)'")),
             Catch::Contains(":5:11: reports.pattern has no group loss"));
}

TEST_CASE("a name in braces that is no field is refused where it stands", "[sweep]") {
  CHECK_THAT(refusal("command = [\"true\",\n  \"{l}\"]\nmetric = \"loss\"\n[space]\nlr = 1\n"),
             Catch::Contains("sweep.toml:2:3: command cannot be: {l} in '{l}' is no field of the "
                             "space; did you mean 'lr'?"));
  CHECK_THAT(
      refusal(sweep_with("[env]\nA = \"1\"\nRATE = \"--lr={lrr}\"")),
      Catch::Contains("sweep.toml:6:8: env.RATE cannot be: {lrr} in '--lr={lrr}' is no field "
                      "of the space; did you mean 'lr'?"));
  CHECK_THAT(
      refusal(sweep_with("[env]\nA = \"{configfile}\"")),
      Catch::Contains("5:5: env.A cannot be") && Catch::Contains("did you mean 'config_file'?"));
  CHECK_THAT(refusal(sweep_with("[reports]\ntensorboard = \"{checkpointdir}/logs\"")),
             Catch::Contains("5:15: reports.tensorboard cannot be") &&
                 Catch::Contains("did you mean 'checkpoint_dir'?"));
  CHECK(refusal(sweep_with("[env]\nA = \"{lr} {{lrr}} {config_file} {checkpoint_dir}\"")) ==
        "not refused");
}

TEST_CASE("texts have the values of fields and the paths of the trial put in", "[sweep]") {
  const auto fields = with_paths({{"lr", "0.5", "0.5"}, {"kind", "a b", "\"a b\""}}, "/runs/1");
  CHECK(filled_in("{lr}{{lr}}{kind}", fields) == "0.5{lr}a b");
  CHECK(filled_in("{checkpoint_dir}:{config_file}", fields) == "/runs/1:/runs/1/config.json");
  CHECK(filled_in("no { end } of it", {{" end ", "x", ""}}) == "no x of it");
  CHECK(filled_in("{", fields) == "{");
  CHECK(filled_in(Variables{{"{lr}", "{lr}"}}, fields) == Variables{{"{lr}", "0.5"}});
  CHECK_THROWS_WITH(filled_in("{LR}", fields), Catch::Contains("did you mean 'lr'?"));
}

TEST_CASE("a domain that cannot be is refused where it stands", "[sweep]") {
  const auto lr = [](const std::string& domain) {
    return refusal(sweep_with("", "lr = " + domain));
  };
  CHECK_THAT(lr("{ uniform = [1.0, 0.0] }"), Catch::Contains("space.lr cannot be"));
  CHECK_THAT(lr("{ uniform = [1.0] }"), Catch::Contains("space.lr.uniform has two values"));
  CHECK_THAT(lr("{ integer = [0.5, 3] }"), Catch::Contains("has a bound that is no integer"));
  CHECK_THAT(lr("{ unifrom = [0, 1] }"),
             Catch::Contains("there is no key space.lr.unifrom; did you mean 'uniform'?"));
  CHECK_THAT(lr("{ }"), Catch::Contains("is a value, or a table with one of uniform"));
  CHECK_THAT(lr("{ choice = [] }"), Catch::Contains("space.lr cannot be"));
  CHECK_THAT(refusal(sweep_with("first = [{ lr = 7.0 }]")),
             Catch::Contains("first has lr = 7, which its domain has not"));
  CHECK_THAT(refusal(sweep_with("first = [{ }]")),
             Catch::Contains("first has an entry without lr"));
}

TEST_CASE("a sweep ends early by what a C++ program can name", "[sweep]") {
  using namespace std::chrono_literals;
  const auto plan =
      read_sweep(written(sweep_with("notice_silence = 90\n[stop]\nreports = 20\n"
                                    "plateau = { reports = 5, delta = 0.01 }\ntrial_time = 1.5\n"
                                    "reaches = 0.1\nall_reports = 1000\nno_better_trials = 7\n"
                                    "cost = 3600\ncost_metric = \"seconds\"")))
          .plan;
  CHECK(plan.notice_silence == 90s);
  CHECK(plan.stop.reports == 20);
  CHECK(plan.stop.plateau.reports == 5);
  CHECK(plan.stop.plateau.delta == 0.01);
  CHECK(plan.stop.trial_time == 1500ms);
  CHECK(plan.stop.reaches == 0.1);
  CHECK(plan.stop.all_reports == 1000);
  CHECK(plan.stop.no_better_trials == 7);
  CHECK(plan.stop.cost == 3600);
  CHECK(plan.stop.cost_metric == "seconds");
  const auto none = read_sweep(written(sweep_with("[stop]\n[stop.plateau]\nreports = 3"))).plan;
  CHECK(none.notice_silence == 0s);
  CHECK(none.stop.plateau.reports == 3);
  CHECK(none.stop.plateau.delta == 0);
  CHECK(none.stop.trial_time == 0s);
  CHECK(none.stop.cost == 0);
}

TEST_CASE("criteria of an early end that cannot be are refused where they stand", "[sweep]") {
  const auto stop = [](const std::string& keys) { return refusal(sweep_with("[stop]\n" + keys)); };
  CHECK_THAT(stop("trial_time = -1"),
             Catch::Contains(":5:14: stop.trial_time is a number, at least 0"));
  CHECK_THAT(stop("trial_time = \"1 h\""), Catch::Contains(":5:14: stop.trial_time is a number"));
  CHECK_THAT(stop("trial_time = 1e300"), Catch::Contains("stop.trial_time is at most 1000000000"));
  CHECK_THAT(stop("trialtime = 1"),
             Catch::Contains(":5:1: there is no key stop.trialtime; did you mean 'trial_time'?"));
  CHECK_THAT(stop("plateau = 5"), Catch::Contains(":5:11: stop.plateau is a table"));
  CHECK_THAT(stop("plateau = { reports = 0 }"),
             Catch::Contains("stop.plateau.reports is an integer, at least 1"));
  CHECK_THAT(stop("plateau = { reports = 5, delta = -0.1 }"),
             Catch::Contains("stop.plateau.delta is a number, at least 0"));
  CHECK_THAT(stop("plateau = { delta = 0.1 }"),
             Catch::Contains(":5:11: stop.plateau.reports is missing: after how many reports "
                             "without a better one a trial ends, reports = 5"));
  CHECK_THAT(stop("plateau = { report = 5 }"),
             Catch::Contains("there is no key stop.plateau.report; did you mean 'reports'?"));
  CHECK_THAT(stop("cost = -1\ncost_metric = \"seconds\""),
             Catch::Contains(":5:8: stop.cost is a number, at least 0"));
  CHECK_THAT(stop("cost = 1\ncost_metric = 2"), Catch::Contains("stop.cost_metric is text"));
  CHECK_THAT(stop("cost = 3600"),
             Catch::Contains(":5:8: stop.cost needs the metric that each report gives its cost as: "
                             "cost_metric = \"seconds\""));
  CHECK_THAT(stop("cost = 3600\ncost_metric = \"\""), Catch::Contains(":5:8: stop.cost needs"));
  CHECK_THAT(stop("cost_metric = \"seconds\""),
             Catch::Contains(":5:15: stop.cost_metric needs the cost at which the sweep ends: "
                             "cost = 3600"));
  CHECK_THAT(refusal(sweep_with("notice_silence = -1")),
             Catch::Contains(":4:18: notice_silence is a number, at least 0"));
}

TEST_CASE("a file that is not there is said so", "[sweep]") {
  CHECK_THROWS_WITH(read_sweep("/no/such/sweep.toml"),
                    Catch::Contains("'/no/such/sweep.toml' cannot be read"));
  CHECK_THROWS_WITH(read_sweep("/tmp"), Catch::Contains("'/tmp' is a folder: give the file of the "
                                                        "sweep, and name the folder"));
}

TEST_CASE("numbers that no setting can have are refused where they stand", "[sweep]") {
  CHECK_THAT(refusal(sweep_with("grace = nan")), Catch::Contains("4:9: grace is a finite number"));
  CHECK_THAT(refusal(sweep_with("time_budget = -1")), Catch::Contains("is a number, at least 0"));
  CHECK_THAT(refusal(sweep_with("max_failures = 9223372036854775807")),
             Catch::Contains("max_failures is at most 1000000000"));
  CHECK_THAT(refusal(sweep_with("[gang]\ncpus = inf")), Catch::Contains("cpus is a finite number"));
}

TEST_CASE("a field has one kind, and a step only where there is one", "[sweep]") {
  CHECK_THAT(refusal(sweep_with("", "lr = { uniform = [0, 1], choice = [1, 2] }")),
             Catch::Contains("choice is one kind too many"));
  CHECK_THAT(refusal(sweep_with("", "lr = { log_integer = [1, 8], step = 2 }")),
             Catch::Contains("step is of the other kinds"));
}

TEST_CASE("a searcher has its options, and another one's are refused", "[sweep]") {
  const auto searcher = [](const std::string& keys) {
    return sweep_with("[searcher]\n" + keys, "lr = { uniform = [0.0, 1.0] }");
  };
  for (const auto* keys :
       {"type = \"random\"",
        "type = \"tpe\"\nstartup_trials = 5\ncandidates = 9\nmultivariate = false\n"
        "constant_liar = false\ngamma = 0.1\nmost_good = 9",
        "type = \"cmaes\"\nsigma = 0.3\npopulation = 8\nrestart = false\nrandom_choices = true",
        "type = \"gaussian_process\"\nstartup = 4\ncandidates = 64\nfitted = 20\nknown = 30",
        "type = \"bohb_model\"\nrandom = 0.2\ngood = 0.3\ncandidates = 8\nwidening = 2",
        "type = \"nsga2\"\npopulation = 20\ncrossover = 0.8\nmutation = 0.1\n"
        "crossover_index = 3\nmutation_index = 4",
        "type = \"halton\"\nscramble = true"}) {
    CAPTURE(keys);
    CHECK(refusal(searcher(keys)) == "not refused");
  }
  CHECK_THAT(refusal(searcher("type = \"tpe\"\nstartup_trial = 5")),
             Catch::Contains("sweep.toml:6:1: there is no key searcher.startup_trial; did you mean "
                             "'startup_trials'?"));
  CHECK_THAT(refusal(searcher("type = \"random\"\nsigma = 0.1")),
             Catch::Contains("6:1: there is no key searcher.sigma"));
  CHECK_THAT(refusal(searcher("type = \"tpe\"\ncandidates = 3\ngamma = 2")),
             Catch::Contains("7:9: searcher.gamma cannot be: tpe: gamma is 2"));
  CHECK_THAT(refusal(searcher("type = \"nsga2\"\ncrossover_index = 3\ncrossover = 1.5")),
             Catch::Contains("7:13: searcher.crossover cannot be"));
  CHECK_THAT(refusal(searcher("type = \"cmaes\"\npopulation = \"large\"")),
             Catch::Contains("6:14: searcher.population is an integer"));
  CHECK_THAT(
      refusal(sweep_with("[scheduler]\ntype = \"pbt\"\ninterval = 2\nquantile = 0.75")),
      Catch::Contains("7:12: scheduler.quantile cannot be: ") && Catch::Contains("0 to 0.5"));
}

TEST_CASE("the options of a searcher are what it searches with", "[sweep]") {
  const auto first = [](const std::string& searcher) {
    return first_commands(read_sweep(written(sweep_with("[searcher]\n" + searcher,
                                                        "lr = { uniform = [0.0, 1.0] }"))),
                          1)
        .front();
  };
  CHECK(first("type = \"sobol\"\nscramble = false") == "true 0");
  CHECK_THAT(first("type = \"cmaes\"\nsigma = 1e-12"), Catch::StartsWith("true 0.5000000") ||
                                                           Catch::StartsWith("true 0.4999999") ||
                                                           Catch::Equals("true 0.5"));
}

TEST_CASE("the gang of a trial has the options of troupe run", "[sweep]") {
  const auto sweep =
      read_sweep(written(sweep_with("[gang]\nranks = 4\ngpus = 0.5\nstrategy = \"strict-pack\"\n"
                                    "label = { zone = \"b\", disk = \"ssd\" }")));
  CHECK(sweep.strategy == troupe::Strategy::StrictPack);
  CHECK(sweep.each.labels ==
        std::vector<std::pair<std::string, std::string>>{{"zone", "b"}, {"disk", "ssd"}});
  CHECK(read_sweep(written(sweep_with("[gang]\nranks = 6\nper_node = 3"))).per_node == 3);

  const auto gang = [](const std::string& keys) { return refusal(sweep_with("[gang]\n" + keys)); };
  CHECK_THAT(gang("strategy = \"packed\""),
             Catch::Contains("5:12: gang.strategy is one of pack, spread"));
  CHECK_THAT(gang("labels = { zone = \"b\" }"),
             Catch::Contains("5:1: there is no key gang.labels; did you mean 'label'?"));
  CHECK_THAT(gang("label = \"zone=b\""), Catch::Contains("5:9: gang.label is a table"));
  CHECK_THAT(gang("label = { zone = 3 }"), Catch::Contains("gang.label.zone is text"));
  CHECK_THAT(gang("ranks = 4\nper_node = 3"),
             Catch::Contains("6:12: gang.per_node is 3, and 4 ranks cannot be dealt out so"));
  CHECK_THAT(gang("per_node = 3"), Catch::Contains("gang.per_node is of a trial whose ranks"));
  CHECK_THAT(gang("ranks = 2\nper_node = 2\nstrategy = \"pack\""),
             Catch::Contains("7:12: gang.strategy says where ranks go"));
  CHECK_THAT(gang("gpus = 1.5"), Catch::Contains("5:8: gang.gpus cannot be: ") &&
                                     Catch::Contains("must be whole above 1"));
}

TEST_CASE("what is not on this machine is named where the sweep names it", "[sweep]") {
  const auto missing = [](const std::string& command, const std::string& more = "") {
    return not_here(read_sweep(written("command = [\"" + command + "\"]\nmetric = \"loss\"\n" +
                                       more + "[space]\nx = { grid = [1, 2] }\n")));
  };
  CHECK(missing("true").program.empty());
  CHECK_THAT(missing("no-such-program").program,
             Catch::Contains("sweep.toml:1:11: there is no program 'no-such-program' in its PATH"));
  CHECK_THAT(missing("./train{x}").program, Catch::Contains("/train1'"));
  CHECK_THAT(missing("./sweep.toml").program, Catch::Contains("chmod +x"));
  CHECK(missing("true", "workdir = \".\"\n").workdir.empty());
  CHECK_THAT(missing("true", "workdir = \"sent\"\n").workdir,
             Catch::Contains("sweep.toml:3:11: there is no folder '" + folder().path() + "/sent'"));
  // PATH is that of the trials.
  CHECK_THAT(missing("true", "[env]\nPATH = \"/nowhere\"\n").program,
             Catch::Contains("in its PATH (/nowhere)"));
}

TEST_CASE("check shows the commands of the trials that would run first", "[sweep]") {
  const auto commands = [](const std::string& text) {
    return first_commands(read_sweep(written(text)), 3);
  };
  using Commands = std::vector<std::string>;
  CHECK(commands(
            "command = [\"true\", \"{x}\"]\nmetric = \"loss\"\n[space]\nx = { grid = [5, 7] }\n") ==
        Commands{"true 5", "true 7"});
  CHECK(
      commands("command = [\"true\", \"{config_file}\"]\nmetric = \"loss\"\n[env]\nA = \"1\"\n"
               "X = \"is {x}\"\n[space]\nx = { grid = [5, 7] }\n") ==
      Commands{"X=is 5 true CHECKPOINT_DIR/config.json", "X=is 7 true CHECKPOINT_DIR/config.json"});
  const auto given = commands(sweep_with("first = [{ lr = 0.25 }]\n[searcher]\ntype = \"tpe\""));
  CHECK(given.size() == 3);
  CHECK(given.front() == "true 0.25");
  CHECK(
      commands("command = [\"true\", \"{x}\"]\nmetric = \"loss\"\ntrials = 2\n[stop]\nreaches = 1\n"
               "[space]\nx = { uniform = [0.0, 1.0] }\n")
          .size() == 2);
  CHECK(commands(sweep_with("time_budget = 0.5")).size() == 3);
}

TEST_CASE("what is made up in a preview ends neither trials nor the sweep", "[sweep]") {
  using namespace std::chrono_literals;
  for (const auto* mode : {"mode = \"min\"\n", "mode = \"max\"\n"}) {
    auto sweep = read_sweep(written(
        sweep_with(mode + std::string("[scheduler]\ntype = \"asha\"\nmax_t = 9\neta = 3"))));
    const auto plain = preview(sweep);
    CHECK(plain.ignored.empty());
    REQUIRE(plain.reached.front() == troupe::tune::detail::Reached{1, 3});
    CHECK(plain.reached.back().t == 9);
    CHECK(plain.reports_unstopped == 3 * 9);

    auto& stop = sweep.plan.stop;
    stop = {.plateau = {.reports = 1, .delta = 1e9},
            .trial_time = 1ms,
            .reaches = sweep.plan.objective.mode == troupe::tune::Min ? 1e9 : -1e9,
            .no_better_trials = 1,
            .cost = 1e-9,
            .cost_metric = "loss"};
    sweep.plan.time_budget = 1ms;
    const auto stopped = preview(sweep);
    CHECK(stopped.ignored == std::vector<std::string>{"stop.plateau", "stop.trial_time",
                                                      "stop.reaches", "stop.no_better_trials",
                                                      "stop.cost", "time_budget"});
    CHECK(stopped.reached == plain.reached);
    CHECK(stopped.reports == plain.reports);
    CHECK(stopped.busy == plain.busy);

    // Numbers of reports are not made up.
    stop = {.reports = 2};
    CHECK(preview(sweep).reached.back().t == 3);
    CHECK(preview(sweep).reached.back().trials == 0);
  }
}

namespace {

/// What `troupe tune check` answers with.
std::string answer_of_check(const std::string& text) {
  try {
    const auto sweep = read_sweep(written(text));
    check_runs(sweep);
    preview(sweep);
  } catch (const std::exception& refused) {
    return refused.what();
  }
  return "not refused";
}

/// ".trials", "tune::tpe", "Options::gpus".
bool has_name_in_cpp(const std::string& text) {
  return std::regex_search(text, std::regex(R"((^|[ (`'\[])\.[a-z_]+|[a-zA-Z]::)"));
}

}  // namespace

TEST_CASE("errors of a sweep name the keys of its file, not the options of C++", "[sweep]") {
  const std::string grid = "x = { grid = [1, 2, 3] }", choice = "x = { choice = [\"a\", \"b\"] }";
  const auto without_trials = [](const std::string& more, const std::string& space) {
    return "command = [\"true\", \"{x}\"]\nmetric = \"loss\"\n" + more + "\n[space]\n" + space +
           "\n";
  };
  const auto searcher = [](const std::string& keys) {
    return sweep_with("", "lr = { uniform = [0.0, 1.0] }\n[searcher]\n" + keys);
  };
  const auto scheduler = [](const std::string& keys) {
    return sweep_with("", "lr = { uniform = [0.0, 1.0] }\n[scheduler]\n" + keys);
  };
  struct Case {
    std::string file, words;
  };
  const std::vector<Case> cases{
      {sweep_with("first = [{ lr = 0.1 }, { lr = 0.1 }, { lr = 0.1 }, { lr = 0.1 }]"),
       "tune: first has 4 configurations, and trials is 3"},
      {without_trials("", grid + "\n[searcher]\ntype = \"tpe\""),
       "tune: trials is 0, and tpe walks"},
      {without_trials("trials = 20", choice + "\n[searcher]\ntype = \"cmaes\""),
       "set random_choices = true to draw it"},
      {scheduler("type = \"pbt\"\ninterval = 1\n[searcher]\ntype = \"tpe\""),
       "this scheduler searches by itself, by changing configurations; leave out searcher"},
      {without_trials("trials = 1",
                      "x = { uniform = [0.0, 1.0] }\n[scheduler]\ntype = \"pbt\"\ninterval = 1"),
       "this scheduler needs at least 2 trials, and trials makes 1"},
      {scheduler("type = \"pbt\"\ninterval = 1\nquantile = 2"), "scheduler.quantile cannot be: "},
      {scheduler("type = \"pb2\"\ninterval = 1\nquantile = 2"), "scheduler.quantile cannot be: "},
      {scheduler("type = \"median_stopping\"\ngrace = 5\n[stop]\nreports = 1"),
       "t=5 by the scheduler's options, and trials end at stop.reports = 1"},
      {searcher("type = \"tpe\"\ngamma = 2"), "searcher.gamma cannot be: tpe: gamma is 2"},
      {searcher("type = \"cmaes\"\nsigma = 2"), "searcher.sigma cannot be: cmaes: sigma is 2"},
      {searcher("type = \"nsga2\"\ncrossover = 2"), "nsga2: crossover is 2"},
      {searcher("type = \"bohb_model\"\ngood = 0.9"), "bohb_model: good is 0.9"},
      {sweep_with("", "lr = { uniform = [1.0, 0.0] }"), "space.lr cannot be: "},
      {sweep_with("mlflow = \"nonsense\""), "mlflow cannot be: tune: mlflow is 'nonsense': "},
      {sweep_with("storage = \"/proc/x\""), "sweep.toml:4:11: tune: storage: cannot make /proc/x"},
      {sweep_with("", "lr = { uniform = [0.0, 1.0] }\n[gang]\ngpus = 1.5"),
       "gang.gpus cannot be: gpus must be whole above 1"},
  };
  for (const auto& each : cases) {
    const auto answer = answer_of_check(each.file);
    INFO(each.file << "\n" << answer);
    CHECK_THAT(answer, Catch::Contains(each.words));
    CHECK_FALSE(has_name_in_cpp(answer));
  }
}
