// Searches that send to a real MLflow server; skipped where no mlflow is installed.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "guard.hpp"
#include "python.hpp"
#include "support/certificate.hpp"
#include "support/http_answer.hpp"
#include "support/mlflow_names.hpp"
#include "support/mlflow_search.hpp"
#include "support/temporary_folder.hpp"
#include "support/variables.hpp"

namespace mlflow_server_test {

using namespace troupe;
using namespace troupe::tune;
using namespace std::chrono_literals;
using namespace mlflow_search;
using troupe::test::kGuard;

namespace {

std::string printed_by(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    output.append(part.data(), size);
  pclose(pipe);
  return output.substr(0, output.find('\n'));
}

/// `mlflow server` in this folder, until this object goes. Over TLS with a certificate.
class RealServer {
 public:
  RealServer(const std::string& program, const fs::path& folder, unsigned short port,
             const std::optional<Certificate>& certificate)
      : url_{(certificate ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port)} {
    const auto tls = certificate ? " --uvicorn-opts '--ssl-certfile " + certificate->file.string() +
                                       " --ssl-keyfile " + certificate->file.string() + "'"
                                 : "";
    pid_ = std::stoi(printed_by("cd '" + folder.string() + "' && { setsid '" + program +
                                "' server --host 127.0.0.1 --port " + std::to_string(port) + tls +
                                " --workers 1 --backend-store-uri sqlite:///runs.db > server.log "
                                "2>&1 & echo $!; }"));
  }
  ~RealServer() { ::kill(-pid_, SIGKILL); }

  const std::string& url() const { return url_; }
  bool answers_within(std::chrono::seconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      if (answer_of(url_, "/health").status == 200) return true;
      std::this_thread::sleep_for(100ms);
    }
    return false;
  }

 private:
  std::string url_;
  pid_t pid_ = 0;
};

constexpr auto* kJudge = R"(
import json, math, os
from mlflow.tracking import MlflowClient
client = MlflowClient(os.environ['URL'])
experiment = client.get_experiment_by_name('digits')
runs = {run.data.tags.get('troupe.trial', 'parent'): run for run in client.search_runs([experiment.experiment_id], max_results=1000)}
summary = json.load(open('summary.json'))
reports = [json.loads(line) for line in open('reports.jsonl')]
parent = runs.pop('parent')
assert parent.info.status == 'FINISHED' and parent.info.run_name == 'sweep/run-1', parent
assert parent.data.params['space/lr'] == 'loguniform(0.001, 1)', parent.data.params
assert parent.data.metrics['loss'] == summary['best']['best'], parent.data.metrics
assert parent.data.tags['troupe.best_trial'] == str(summary['best']['trial'])
assert parent.data.tags['troupe.best_run_id'] == runs[str(summary['best']['trial'])].info.run_id
assert len(runs) == len(summary['trials']) == 12
told = 0
for trial in summary['trials']:
    run = runs[str(trial['trial'])]
    assert run.data.tags['mlflow.parentRunId'] == parent.info.run_id
    assert run.info.run_name == 'trial %d' % trial['trial']
    assert run.info.status == ('FAILED' if trial['status'] == 'errored' else 'FINISHED'), run.info
    assert run.info.end_time >= run.info.start_time
    assert {name: str(value) for name, value in trial['config'].items() if name != 'lr'} == {name: run.data.params[name] for name in ('kind', 'size')}
    assert float(run.data.params['lr']) == trial['config']['lr']
    for name, there in (('loss', 'loss'), ('odd, nan', 'odd_x2C nan')):
        own = [(r['t'], float(r['metrics'][name])) for r in reports if r['trial'] == trial['trial']]
        found = sorted((m.step, m.value) for m in client.get_metric_history(run.info.run_id, there)) if own else []
        assert len(own) == len(found), (own, found)
        for (t, value), (step, metric) in zip(own, found):
            assert t == step and (value == metric or math.isnan(value) and math.isnan(metric)), (own, found)
        told += len(own)
print('the same', told > 50)
)";

constexpr auto* kHardNames = R"(
import os
from mlflow.tracking import MlflowClient
client = MlflowClient(os.environ['URL'])
experiment = client.get_experiment_by_name('names')
run, = [run for run in client.search_runs([experiment.experiment_id]) if 'troupe.trial' in run.data.tags]
print(sorted(run.data.metrics.values()) == [float(i) for i in range(len(run.data.metrics))],
      {name: float(value) for name, value in run.data.params.items()} == run.data.metrics, len(run.data.metrics))
)";

}  // namespace

TEST_CASE("a real MLflow server has what a search reported, over an interruption too",
          "[tune][mlflow]") {
  const auto program = printed_by("command -v mlflow");
  if (program.empty()) {
    std::cout << "skipped: there is no mlflow in PATH; pip install mlflow brings it\n";
    return;
  }
  const bool has_tls = GENERATE(false, true);
  CAPTURE(has_tls);
  const TemporaryFolder folder;
  std::optional<Certificate> certificate;
  std::optional<Variables> variables;  // which the judge's own client reads too
  if (has_tls) {
    certificate = Certificate::make(folder.path(), "IP:127.0.0.1");
    variables.emplace(
        Variables::Values{{"MLFLOW_TRACKING_SERVER_CERT_PATH", certificate->file.string()}});
  }
  const RealServer server(program, folder.path(), MlflowStub().port(), certificate);
  REQUIRE(server.answers_within(120s));
  reports_to_interrupt = 15;
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = kGuard;
  const auto interrupted = tune::run<train>(wanted);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  wanted.resume = true;
  const auto results = tune::run<train>(wanted);
  INFO(results.summary());
  CHECK(occurrences(results.summary(), "MLflow") == 0);
  ::setenv("URL", server.url().c_str(), 1);
  const auto interpreter = fs::canonical(program).parent_path() / "python";
  CHECK(test::python(results.folder(), kJudge, interpreter.string()) == "the same True\n");

  tell_hard_names(server.url());
  CHECK(test::python(folder.path(), kHardNames, interpreter.string()) ==
        "True True " + std::to_string(hard_names().size()) + "\n");
}

}  // namespace mlflow_server_test
