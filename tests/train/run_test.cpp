#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <future>
#include <span>
#include <string>

#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>
#include <unistd.h>

#include "guard.hpp"
#include "support/catch.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using troupe::test::kGuard;

namespace {

struct Config {
  double lr = 0.1;
  int epochs = 3;
  std::string mishap = {};
  int at_rank = -1;
};

double fit_line(train::Context& ctx, const Config& config) {
  if (ctx.rank() == config.at_rank && config.mishap == "throw early")
    throw std::out_of_range("no such row");
  if (ctx.rank() == config.at_rank && config.mishap == "return early") return 0;
  const auto x = rows(32, 3, 1);
  const train::Dataset data{x, x.sum(1, true)};
  auto net = ctx.prepare(Net(std::vector<std::int64_t>{3, 1}));
  auto optim = ctx.prepare(torch::optim::SGD(net->parameters(), config.lr));
  double loss = 0;
  for (int epoch : ctx.epochs(config.epochs)) {
    for (auto& batch : ctx.loader(data, 4, epoch)) {
      optim.zero_grad();
      auto error = torch::nn::functional::mse_loss(net->forward(batch.data), batch.target);
      error.backward();
      optim.step();
    }
    if (ctx.rank() == config.at_rank && config.mishap == "throw")
      throw std::out_of_range("no such row");
    if (ctx.rank() == config.at_rank && config.mishap == "return") return 0;
    if (ctx.rank() == config.at_rank && config.mishap == "die") ::kill(::getpid(), SIGKILL);
    loss = torch::nn::functional::mse_loss(net->forward(data.data), data.target).item<double>();
    ctx.report(
        {{"epoch", epoch}, {"loss", loss}, {"rank", ctx.rank()}, {"world", ctx.world_size()}},
        ctx.checkpoint(net, optim));
  }
  return loss;
}

/// One backward of a model whose gradient is the rank's input: `lr` on rank 0, twice that on rank
/// 1. Reports the gradient that this rank has then, and sums over the ranks of gradients and of
/// process ids.
double average_once(train::Context& ctx, const Config& config) {
  auto net = ctx.prepare(Net(std::vector<std::int64_t>{1, 1}));
  net->layers[0]
      ->forward(torch::full({1, 1}, config.lr * (ctx.rank() + 1), torch::kFloat64))
      .sum()
      .backward();
  const double gradient = net->layers[0]->weight.grad().item<double>();
  std::vector<double> sums{gradient, static_cast<double>(::getpid())};
  ctx.communicator().all_reduce(std::span(sums));
  ctx.report({{"gradient", gradient},
              {"gradients", sums[0]},
              {"processes", sums[1]},
              {"seed", ctx.seed()}});
  return gradient;
}

void say_batch(train::Context& ctx, const std::int64_t& rows) {
  ctx.effective_batch(rows);
  const train::Dataset data{torch::zeros({4, 1}), torch::zeros({4})};
  for (auto& batch : ctx.loader(data, 2, 0)) CHECK(batch.data.size(0) == 2);
}

std::uint64_t seed_of(train::Context& ctx, const Config&) { return ctx.seed(); }

int torch_threads() { return at::get_num_threads(); }
/// Also those of a thread that user code has started.
struct Computes {
  int threads() const { return torch_threads(); }
  int threads_of_another() const { return std::async(std::launch::async, torch_threads).get(); }
};
int threads_of_rank(train::Context&, const Config&) { return torch_threads(); }

void report_for_ever(train::Context& ctx, const Config&) {
  for (int i = 0;; ++i) ctx.report({{"i", i}});
}

/// After Stop rank 0 goes on to its next report, and rank 1 throws before that one.
void fail_after_stop(train::Context& ctx, const Config&) {
  ctx.report({{"i", 0}});
  if (ctx.rank() == 1) throw std::out_of_range("no such row");
  ctx.report({{"i", 1}});
}

double value(const train::Report& report, const std::string& name) {
  for (const auto& metric : report.metrics) {
    if (metric.name == name) return metric.value;
  }
  throw std::out_of_range(name);
}

train::RunOptions two_here() { return {.workers = 2, .where = train::Where::ThisNode}; }

}  // namespace

TEST_CASE("a run of two ranks on this machine returns rank 0's value and reports", "[train][run]") {
  const Scratch storage;
  auto options = two_here();
  options.storage = storage.path();
  const auto result = train::run<fit_line>(Config{}, options);

  REQUIRE(result.value);
  CHECK(*result.value < 0.1);
  REQUIRE(result.history.size() == 3);
  CHECK(value(result.history[2], "epoch") == 2);
  CHECK(value(result.history[2], "rank") == 0);
  CHECK(value(result.history[2], "world") == 2);
  CHECK(value(result.history[2], "loss") == *result.value);
  CHECK(result.checkpoint == storage.path() / "checkpoint_000002");
  CHECK(std::filesystem::exists(result.checkpoint / "model0_rank0.safetensors"));
  CHECK(result.seconds > 0);
  CHECK_FALSE(result.stopped);
  CHECK(result.world_size == 2);
  CHECK(result.effective_batch == 8);

  options.restore_from = result.checkpoint;
  options.where = train::Where::ThisNode;
  const auto more = train::run<fit_line>(Config{.epochs = 5}, options);
  REQUIRE(more.history.size() == 2);
  CHECK(value(more.history[0], "epoch") == 3);
  CHECK(*more.value < *result.value);

  options.restore_from = more.checkpoint;
  const auto nothing = train::run<fit_line>(Config{.epochs = 5}, options);
  CHECK(nothing.history.empty());
  CHECK(nothing.checkpoint == more.checkpoint);
}

TEST_CASE("a run that is told to stop ends after that report", "[train][run]") {
  auto options = two_here();
  options.on_report = [](const train::Report& report) {
    return report.index == 1 ? Verdict::Stop : Verdict::Continue;
  };
  const auto result = train::run<fit_line>(Config{.epochs = 100}, options);
  CHECK(result.stopped);
  CHECK(result.history.size() == 2);
  CHECK(result.value);

  const auto endless = train::run<report_for_ever>(Config{}, options);
  CHECK(endless.stopped);
  CHECK(endless.history.size() == 2);
}

TEST_CASE("LibTorch has a thread for each CPU that an actor, a task or a rank asks for, or one",
          "[train][run][threads]") {
  for (const auto* variable : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    ::unsetenv(variable);  // of whoever runs the tests
  const auto limit = kGuard;
  const auto cluster = init({.cpus = 8});
  for (const int cpus : {0, 1, 2, 3}) {
    const auto given = cpus == 0 ? with({}) : with({.cpus = static_cast<double>(cpus)});
    const auto actor = given.spawn<Computes>();
    CHECK(actor.call<&Computes::threads>().get(limit) == std::max(cpus, 1));
    CHECK(actor.call<&Computes::threads_of_another>().get(limit) == std::max(cpus, 1));
  }
  CHECK(task<torch_threads>().get(limit) == 1);
  CHECK(with({.cpus = 2}).task<torch_threads>().get(limit) == 2);
  CHECK(train::run<threads_of_rank>(Config{}, {.workers = 2}).value == 1);
  CHECK(train::run<threads_of_rank>(Config{}, {.workers = 2, .each = {.cpus = 3}}).value == 3);
}

TEST_CASE("data-parallel runs follow one another in the processes of one gang", "[train][run]") {
  auto cluster = init({.cpus = 2});
  using Worker = troupe::detail::TrainableWorker<average_once>;
  const auto ranks = gang<Worker>({.size = 2}, Config{.lr = 1}, troupe::detail::RunInfo{.seed = 1});
  double processes = 0;
  for (const int number : {1, 2, 3}) {
    if (number > 1) {
      const troupe::detail::RunInfo info{.seed = static_cast<std::uint64_t>(number)};
      for (const auto& renewed : ranks.all<&Worker::renew>(Config{.lr = 1.0 * number}, info)) {
        renewed.get(kGuard);
      }
    }
    troupe::detail::TrialRun<average_once> run(ranks);
    const auto event = run.wait();
    train::Report report;
    report.metrics = event.metrics;
    CHECK(value(report, "gradient") == 1.5 * number);
    CHECK(value(report, "gradients") == 3.0 * number);
    CHECK(value(report, "seed") == number);
    if (number == 1) processes = value(report, "processes");
    CHECK(value(report, "processes") == processes);
    run.answer(Verdict::Continue);
    CHECK(run.wait().returned);
    CHECK(run.result() == 1.5 * number);
  }
}

TEST_CASE("what a rank throws comes home from a run", "[train][run][failure]") {
  const int rank = GENERATE(0, 1);
  const std::string when = GENERATE("throw", "throw early");
  try {
    train::run<fit_line>(Config{.mishap = when, .at_rank = rank}, two_here());
    FAIL("the run came to an end");
  } catch (const TaskError& error) {
    CHECK(error.type() == "std::out_of_range");
    CHECK_THAT(error.what(), Contains("no such row"));
    CHECK_THAT(error.where(), Contains("fit_line, rank " + std::to_string(rank) + " of 2, pid "));
  }
}

TEST_CASE("what a rank throws after Stop comes home too", "[train][run][failure]") {
  auto options = two_here();
  options.on_report = [](const train::Report&) { return Verdict::Stop; };
  try {
    train::run<fail_after_stop>(Config{}, options);
    FAIL("the run came to an end");
  } catch (const TaskError& error) {
    CHECK(error.type() == "std::out_of_range");
    CHECK_THAT(error.where(), Contains("fail_after_stop, rank 1 of 2"));
  }
}

TEST_CASE("a killed rank ends the run with its signal, its number and the user's function",
          "[train][run][failure]") {
  try {
    train::run<fit_line>(Config{.mishap = "die", .at_rank = 1}, two_here());
    FAIL("the run came to an end");
  } catch (const ActorDied& error) {
    CHECK(error.signal() == SIGKILL);
    CHECK_THAT(error.what(), Contains("rank 1 of ") && Contains("fit_line") &&
                                 !Contains("TrainableWorker") && !Contains("finish"));
  }
}

TEST_CASE("a rank that returns while the others wait for it ends the run",
          "[train][run][failure]") {
  const int rank = GENERATE(0, 1);
  const std::string when = GENERATE("return", "return early");
  const auto began = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(train::run<fit_line>(Config{.mishap = when, .at_rank = rank}, two_here()),
                  GangBroken);
  CHECK(std::chrono::steady_clock::now() - began < kGuard);  // a collective waits half an hour
}

TEST_CASE("a run that fails leaves no rank behind that would keep the next one waiting",
          "[train][run][failure]") {
  auto cluster = init({.cpus = 2});
  train::RunOptions options{.workers = 2};
  Config config;
  SECTION("the judge of the reports throws") {
    options.on_report = [](const train::Report&) -> Verdict {
      throw std::runtime_error("no verdict");
    };
  }
  SECTION("a rank throws at once") {
    config = {.mishap = "throw early", .at_rank = GENERATE(0, 1)};
  }
  SECTION("a rank returns at once") {
    config = {.mishap = "return early", .at_rank = GENERATE(0, 1)};
  }
  SECTION("the checkpoint to go on from is not there") {
    options.restore_from = "/no/such/checkpoint";
  }
  SECTION("the storage cannot be made") { options.storage = "/proc/no such storage"; }
  CHECK_THROWS(train::run<fit_line>(config, options));
  const auto next = train::run<fit_line>(Config{}, {.workers = 2, .placement_timeout = kGuard});
  CHECK(next.value);
}

TEST_CASE("a run that has ended is summed up in one line", "[train][run]") {
  train::RunOutcome outcome{.seconds = 12.34, .world_size = 4, .effective_batch = 128};
  CHECK(train::detail::words_of(outcome, "", "{anonymous}::fit") ==
        "run 'fit' has ended after 12.3 s: 4 ranks, 128 rows in each step");
  outcome.history = {{.index = 0, .metrics = {{"loss", 0.5}, {"accuracy", 0.98765432}}}};
  outcome.stopped = true;
  CHECK(
      train::detail::words_of(outcome, "digits", "fit") ==
      "run 'digits' was stopped after 12.3 s: 4 ranks, 128 rows in each step, 1 report: loss 0.5, "
      "accuracy 0.98765");
  outcome = {.history = {{}, {.index = 1, .metrics = {{"loss", 0.25}}}}, .world_size = 1};
  CHECK(train::detail::words_of(outcome, "", "shop::fit") ==
        "run 'fit' has ended after 0.0 s: 1 rank, 2 reports; the last: loss 0.25");
}

TEST_CASE("a function says how many rows a step sees", "[train][run]") {
  const auto run = [](std::int64_t rows) {
    return train::run<say_batch>(rows, {.where = train::Where::ThisNode}).effective_batch;
  };
  CHECK(run(96) == 96);
  CHECK_THROWS_WITH(run(0), Contains("an effective batch of 0 rows"));
  CHECK(train::run<seed_of>(Config{}, two_here()).effective_batch == 0);
}

TEST_CASE("a run that fits no cluster of this size is refused with its options' names",
          "[train][run]") {
  const auto cluster = init({.cpus = 2});
  const train::RunOptions options{.workers = 2, .each = {.cpus = 1000}};
  CHECK_THROWS_AS(train::run<fit_line>(Config{}, options), Impossible);
  CHECK_THROWS_WITH(train::run<fit_line>(Config{}, options),
                    Contains("RunOptions::workers = 2") && Contains("RunOptions::each") &&
                        Contains("1000") && Contains("fit_line"));
}

TEST_CASE("options of a run that cannot be are named", "[train][run]") {
  CHECK_THROWS_WITH(train::run<fit_line>(Config{}, {.workers = 0}),
                    Contains("RunOptions::workers is 0"));
  CHECK_THROWS_WITH(
      train::run<fit_line>(Config{}, {.workers = 2, .where = train::Where::InProcess}),
      Contains("one rank"));
}

// Last: it uses LibTorch in this process, which forks no more after it.
TEST_CASE("in this process a run needs no cluster", "[train][run]") {
  // [in process]
  const auto result = train::run<fit_line>(Config{}, {.where = train::Where::InProcess});
  // [/in process]
  REQUIRE(result.value);
  CHECK(*result.value < 0.1);
  CHECK(result.history.size() == 3);
  CHECK(value(result.history[0], "world") == 1);
  CHECK(*train::run<seed_of>(Config{}, {.where = train::Where::InProcess, .seed = 7}).value == 7);
  CHECK(*train::run<seed_of>(Config{}, {.where = train::Where::InProcess}).value == 0);
}
