#include <troupe/train.hpp>
#include <troupe/tune.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include <torch/nn/functional/loss.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/net.hpp"

#include <troupe/cluster.hpp>

#include "guard.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct Config {
  double lr = 0.1;
  double momentum = 0.5;
  int epochs = 8;
  int in_step = 0;  // so many members wait for each other after each epoch
  std::string folder = {};
};

/// FNV-1a over the bytes of tensors. A double holds it exactly, and the sum of many.
class Digest {
 public:
  void add(const torch::Tensor& tensor) {
    const auto whole = tensor.detach().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(whole.data_ptr());
    for (std::size_t i = 0; i < whole.nbytes(); ++i) digest_ = (digest_ ^ bytes[i]) * 0x100000001b3;
  }
  double value() const { return static_cast<double>(digest_ >> 16); }

 private:
  std::uint64_t digest_ = 0xcbf29ce484222325;
};

double digest_of(const Net& net) {
  Digest digest;
  for (const auto& parameter : net->parameters()) digest.add(parameter);
  return digest.value();
}

/// Of the momentum buffers; 0 where there are none.
double digest_of(torch::optim::SGD& optimizer) {
  Digest digest;
  if (optimizer.state().empty()) return 0;
  for (const auto& parameter : optimizer.param_groups()[0].params()) {
    const auto& state = *optimizer.state().at(parameter.unsafeGetTensorImpl());
    digest.add(static_cast<const torch::optim::SGDParamState&>(state).momentum_buffer());
  }
  return digest.value();
}

torch::optim::SGDOptions& options_of(torch::optim::SGD& optimizer) {
  return static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
}

/// What a rank has once model and optimizer are prepared, and the sums over the ranks.
Metrics prepared(train::Context& ctx, const Net& net, torch::optim::SGD& optimizer) {
  const auto& options = options_of(optimizer);
  const std::vector<double> own{digest_of(net), digest_of(optimizer), options.lr(),
                                options.momentum()};
  auto sums = own;
  ctx.communicator().all_reduce(std::span(sums));
  return {{"model", own[0]},      {"optimizer", own[1]},      {"lr", own[2]},
          {"momentum", own[3]},   {"sum_of_models", sums[0]}, {"sum_of_optimizers", sums[1]},
          {"sum_of_lr", sums[2]}, {"pid", getpid()}};
}

/// Members know themselves by their seeds, which are the same in all attempts of a trial.
void meet(const train::Context& ctx, const Config& config, int epoch) {
  const std::filesystem::path here = config.folder + "/epoch-" + std::to_string(epoch);
  std::filesystem::create_directories(here);
  std::ofstream{here / std::to_string(ctx.seed())};
  const auto deadline = std::chrono::steady_clock::now() + test::kGuard;
  const auto there = [&] { return std::distance(std::filesystem::directory_iterator(here), {}); };
  while (there() < config.in_step) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the others did not come");
    usleep(1'000);
  }
}

/// Halves the learning rate after every epoch, so that the optimizer's is the configuration's at
/// its beginning only.
void fit_line(train::Context& ctx, const Config& config) {
  const auto x = rows(32, 3, 1);
  const auto y = x.sum(1, true);
  auto net = ctx.prepare(Net(std::vector<std::int64_t>{3, 4, 1}, ctx.seed()));
  auto optimizer = ctx.prepare(torch::optim::SGD(
      net->parameters(), torch::optim::SGDOptions(config.lr).momentum(config.momentum)));
  const auto at_first = prepared(ctx, net, optimizer);
  for (const int epoch : ctx.epochs(config.epochs)) {
    for (int before = 0; before < epoch && config.in_step > 0; ++before) meet(ctx, config, before);
    optimizer.zero_grad();
    const auto mine = part(x, ctx.rank(), ctx.world_size());
    torch::nn::functional::mse_loss(net->forward(mine), part(y, ctx.rank(), ctx.world_size()))
        .backward();
    optimizer.step();
    options_of(optimizer).lr(options_of(optimizer).lr() / 2);
    auto metrics = at_first;
    metrics.emplace_back("loss",
                         torch::nn::functional::mse_loss(net->forward(x), y).item<double>());
    metrics.emplace_back("written_model", digest_of(net));
    metrics.emplace_back("written_optimizer", digest_of(optimizer));
    metrics.emplace_back("written_lr", options_of(optimizer).lr());
    ctx.report(metrics, ctx.checkpoint(net, optimizer));
  }
}

tune::Results<Config> fit_lines(std::uint64_t trials, Config config,
                                const tune::TemporaryFolder& folder) {
  config.folder = folder.path().string();
  return tune::run<fit_line>(
      {.space = {{"lr", tune::uniform(0.01, 0.1)}, {"momentum", tune::uniform(0, 0.9)}},
       .trials = trials,
       .metric = "loss",
       .scheduler = tune::pbt(
           {.interval = 2,
            .mutate = {{"lr", tune::uniform(0.01, 0.1)}, {"momentum", tune::uniform(0, 0.9)}}}),
       .each = {.workers = 2},
       .storage = folder.path(),
       .seed = 2,
       .config = config,
       .max_failures = 2,  // an overloaded machine loses connections
       .show = tune::Show::None});
}

struct Prepared {
  std::size_t taken_over = 0;
  std::size_t resumed = 0;  ///< from the trial's own checkpoint
};

/// Checks what both ranks of every attempt that went on from a checkpoint had, once all was
/// prepared, against what there was when the checkpoint was written.
Prepared check_what_was_prepared(const std::filesystem::path& run) {
  std::map<std::string, tune::Json> writers;
  std::map<std::pair<tune::Json, tune::Json>, tune::Json> readers;  // by trial and attempt
  for (const auto& report : tune::lines_of(run / "reports.jsonl")) {
    writers[report.value("checkpoint", "")] = report;
    readers.try_emplace({report.at("trial"), report.at("attempt")}, report);
  }
  Prepared prepared;
  for (const auto& launched : tune::events_of(run, "launched")) {
    const auto checkpoint = launched.value("checkpoint", "");
    const auto at = readers.find({launched.at("trial"), launched.at("attempt")});
    if (checkpoint.empty() || at == readers.end()) continue;
    REQUIRE(writers.contains(checkpoint));
    const auto writer = [&](const char* name) {
      return tune::metric_of(writers.at(checkpoint), name);
    };
    const auto reader = [&](const char* name) { return tune::metric_of(at->second, name); };
    INFO(tune::dump(launched) << "\n"
                              << tune::dump(at->second) << "\nwritten by "
                              << tune::dump(writers.at(checkpoint)));
    const bool took_over = writers.at(checkpoint).at("trial") != launched.at("trial");
    const auto& config = launched.at("config");
    const auto lr = took_over ? config.at("lr").get<double>() : writer("written_lr");
    const auto momentum = took_over ? config.at("momentum").get<double>() : writer("momentum");
    CHECK(reader("model") == writer("written_model"));
    CHECK(reader("sum_of_models") == 2 * writer("written_model"));
    CHECK(reader("optimizer") == writer("written_optimizer"));
    CHECK(reader("sum_of_optimizers") == 2 * writer("written_optimizer"));
    CHECK(reader("lr") == lr);
    CHECK(reader("sum_of_lr") == 2 * lr);
    CHECK(reader("momentum") == momentum);
    CHECK(writer("written_optimizer") != 0);
    CHECK(lr != (took_over ? writer("written_lr") : config.at("lr").get<double>()));
    ++(took_over ? prepared.taken_over : prepared.resumed);
  }
  return prepared;
}

void check_all_ended(const tune::Results<Config>& results) {
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ", error '" << trial.error << "', reason '" << trial.reason << "'");
    CHECK(trial.status == tune::Status::Terminated);
    CHECK(trial.t == 8);
    CHECK(trial.failures == 0);
  }
  tune::check_lineage(results);
}

}  // namespace

TEST_CASE(
    "after a takeover both ranks have the donor's model and momentum, and the new configuration's "
    "learning rate",
    "[tune][pbt][train][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = fit_lines(2, {.in_step = 2}, folder);
  check_all_ended(results);
  CHECK(check_what_was_prepared(results.folder()).taken_over > 0);
  std::set<double> processes;
  for (const auto& report : tune::lines_of(results.folder() / "reports.jsonl")) {
    processes.insert(tune::metric_of(report, "pid"));
  }
  CHECK(processes.size() == 2);  // rank 0 of each
}

TEST_CASE("a member that is paused and resumed keeps the learning rate of its checkpoint",
          "[tune][pbt][train][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = fit_lines(3, {}, folder);
  check_all_ended(results);
  const auto prepared = check_what_was_prepared(results.folder());
  CHECK(prepared.resumed > 0);
  CHECK(prepared.taken_over > 0);
}
