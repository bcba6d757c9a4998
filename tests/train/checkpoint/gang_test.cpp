#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <unistd.h>
#include <troupe/train/context.hpp>

#include "built.hpp"
#include "checkpoint/restoring/saved_files.hpp"
#include "python.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"

using namespace troupe;
using namespace troupe::testing;
using train::Context;
namespace fs = std::filesystem;

namespace {

/// A convolution whose weight lies with its channels last, a normalization with buffers, a layer
/// that is frozen and one that is not, and a parameter without elements; of float64.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    torch::manual_seed(7);
    convolution = register_module("convolution", torch::nn::Conv2d(3, 8, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(8));
    frozen = register_module("frozen", torch::nn::Linear(8, 8));
    out = register_module("out", torch::nn::Linear(8, 5));
    empty = register_parameter("empty", torch::zeros({0, 3}));
    to(torch::kFloat64);
    convolution->weight.set_data(convolution->weight.contiguous(torch::MemoryFormat::ChannelsLast));
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto features = torch::tanh(norm->forward(convolution->forward(x))).mean({2, 3});
    return out->forward(frozen->forward(features)) + empty.sum();
  }
  torch::nn::Conv2d convolution{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear frozen{nullptr}, out{nullptr};
  torch::Tensor empty;
};
TORCH_MODULE(Mixed);

/// A training whose ranks all have the same rows, so that any number of them trains alike. It
/// begins where its context says.
struct MixedTraining {
  Context& ctx;
  bool amsgrad = true;
  Mixed net = ctx.prepare(Mixed());
  train::PreparedOptimizer<torch::optim::Adam> optimizer = ctx.prepare(
      torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.05).amsgrad(amsgrad)));

  void step(std::uint64_t number) {
    optimizer.zero_grad();
    const auto x = rows(6, 3 * 5 * 5, number).reshape({6, 3, 5, 5});
    torch::nn::functional::mse_loss(net->forward(x), rows(6, 5, number + 100)).backward();
    optimizer.step();
  }
  std::vector<torch::Tensor> values() {
    const auto whole = ctx.gathered(net);
    return values_of_all(*net);
  }
  static std::vector<torch::Tensor> values_of_all(const torch::nn::Module& module) {
    std::vector<torch::Tensor> all;
    for (const auto& tensor : module.parameters()) all.push_back(tensor.detach().clone());
    for (const auto& tensor : module.buffers())
      all.push_back(tensor.to(torch::kFloat64, false, /*copy=*/true));
    return all;
  }
};

std::string run(int ranks, int stage, const std::function<void(Context&)>& rank,
                const fs::path& storage = {}, const fs::path& from = {}) {
  return failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
    TestMember member(gang, storage, from);
    Context ctx(member, options_with(stage));
    rank(ctx);
  }));
}

struct Gang {
  int ranks;
  int stage;
};

/// Trains for `steps` in a gang of this size and stage, and saves a checkpoint in the storage.
void save_after(std::uint64_t steps, const Gang& gang, const fs::path& storage,
                bool amsgrad = true) {
  REQUIRE(run(
              gang.ranks, gang.stage,
              [&](Context& ctx) {
                MixedTraining training{ctx, amsgrad};
                for (std::uint64_t i = 0; i < steps; ++i) training.step(i);
                ctx.checkpoint(training.net, training.optimizer);
              },
              storage) == "");
}

}  // namespace

TEST_CASE("a checkpoint of any gang is continued by any other, as if never interrupted",
          "[train][checkpoint][gang]") {
  const auto wrote = GENERATE(Gang{1, 0}, Gang{3, 0}, Gang{3, 1}, Gang{2, 2}, Gang{3, 3});
  const Scratch scratch;
  const auto expected_file = (scratch.path() / "expected").string();
  REQUIRE(run(1, 0, [&](Context& ctx) {
            MixedTraining training{ctx};
            for (std::uint64_t i = 0; i < 4; ++i) training.step(i);
            torch::save(training.values(), expected_file);
          }) == "");
  const auto storage = scratch.path() / "storage";
  save_after(2, wrote, storage);
  const auto from = train::latest_checkpoint(storage);
  const auto manifest = train::SavedFiles(from).manifest();
  CHECK(manifest.ranks == wrote.ranks);
  CHECK(manifest.zero_stage == wrote.stage);
  for (const auto& [ranks, stage] : {Gang{1, 0}, Gang{2, 1}, Gang{3, 2}, Gang{2, 3}}) {
    INFO("written by " << wrote.ranks << " ranks at stage " << wrote.stage << ", continued by "
                       << ranks << " at stage " << stage);
    CHECK(run(
              ranks, stage,
              [&](Context& ctx) {
                MixedTraining training{ctx};
                for (std::uint64_t i = 2; i < 4; ++i) training.step(i);
                std::vector<torch::Tensor> expected;
                torch::load(expected, expected_file);
                expect_same(training.values(), expected, 1e-9, "the values after four steps");
              },
              {}, from) == "");
  }
}

TEST_CASE("who takes over a checkpoint and switches amsgrad on has the maximum from then on",
          "[train][checkpoint][gang]") {
  const auto [ranks, stage] = GENERATE(Gang{1, 0}, Gang{2, 0}, Gang{2, 1}, Gang{2, 3});
  CAPTURE(ranks, stage);
  const Scratch scratch;
  const auto storage = scratch.path() / "storage";
  save_after(2, {ranks, stage}, storage, /*amsgrad=*/false);
  const auto from = train::latest_checkpoint(storage);
  const auto without_file = (scratch.path() / "without").string();
  REQUIRE(run(
              1, 0,
              [&](Context& ctx) {
                MixedTraining training{ctx, /*amsgrad=*/false};
                training.step(2);
                torch::save(training.values(), without_file);
              },
              {}, from) == "");
  CHECK(failures(ForkedGang::on_one_node(ranks).run([&, stage = stage](GangContext& gang) {
          TestMember member(gang, {}, from);
          member.is_reconfigured = true;
          Context ctx(member, options_with(stage));
          MixedTraining training{ctx};
          training.step(2);
          std::vector<torch::Tensor> without;
          torch::load(without, without_file);
          expect_same(training.values(), without, 1e-9, "the maximum of the first moment alone");
          training.step(3);
        })) == "");
}

TEST_CASE("each rank writes what it alone has", "[train][checkpoint][gang]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const Scratch storage;
  save_after(1, {2, stage}, storage.path());
  const auto checkpoint = train::latest_checkpoint(storage.path());
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(checkpoint))
    files.insert(entry.path().filename().string());
  std::set<std::string> expected{"checkpoint.json", "model0_rank0.safetensors",
                                 "optimizer0_rank0.safetensors", "optimizer0.pt"};
  if (stage > 0) {
    expected.insert("model0_rank1.safetensors");
    expected.insert("optimizer0_rank1.safetensors");
  }
  CHECK(files == expected);
  // What the archive of the optimizer has are its options.
  CHECK(fs::file_size(checkpoint / "optimizer0.pt") < 10'000);
}

TEST_CASE("a checkpoint that is written while the training goes on has the values of its beginning",
          "[train][checkpoint][gang]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const Scratch storage;
  CHECK(run(
            2, stage,
            [&](Context& ctx) {
              MixedTraining training{ctx};
              for (std::uint64_t i = 0; i < 3; ++i) {
                training.step(i);
                const auto then = training.values();
                const auto saving = ctx.begin_checkpoint(training.net, training.optimizer);
                for (std::uint64_t k = 0; k < 3; ++k) training.step(10 + k);
                const auto saved = saving.wait();
                expect(saving.is_done(), "it is done once it was waited for");
                expect(saved.error.empty(), saved.error);
                if (ctx.rank() != 0) continue;
                Mixed read;
                train::load(read, saved.directory);
                expect_same(MixedTraining::values_of_all(*read), then, 0, "the values of then");
              }
            },
            storage.path()) == "");
}

TEST_CASE("what a program writes after begin_checkpoint is not in the checkpoint",
          "[train][checkpoint][gang]") {
  constexpr std::int64_t kMany = 8 << 20;  // so that the save takes longer than the write
  const bool has_masters = GENERATE(false, true);
  const Scratch storage;
  CHECK(failures(ForkedGang::on_one_node(1).run([&](GangContext& gang) {
          TestMember member(gang, storage.path());
          auto options = options_with(0);
          if (has_masters)
            options.mixed_precision = {.type = train::MixedPrecision::Type::BFloat16,
                                       .master_weights = true};
          Context ctx(member, options);
          auto model = std::make_shared<torch::nn::Module>();
          model->register_parameter("weight", torch::ones({kMany}));
          ctx.prepare(model);
          auto optimizer = ctx.prepare(torch::optim::SGD(model->parameters(), 0.1));
          const auto saving = ctx.begin_checkpoint(model, optimizer);
          {
            const torch::NoGradGuard no_grad;
            model->parameters()[0].fill_(7);
          }
          auto read = std::make_shared<torch::nn::Module>();
          read->register_parameter("weight", torch::zeros({kMany}));
          train::load(read, saving.wait().directory);
          expect(torch::equal(read->parameters()[0], torch::ones({kMany})), "the values of then");
        })) == "");
}

TEST_CASE("a save that nobody waits for is committed when the context ends",
          "[train][checkpoint][gang]") {
  const Scratch storage;
  CHECK(run(
            2, 1,
            [&](Context& ctx) {
              MixedTraining training{ctx};
              training.step(0);
              ctx.begin_checkpoint(training.net, training.optimizer);
              ctx.begin_checkpoint(training.net, training.optimizer);
            },
            storage.path()) == "");
  CHECK(train::latest_checkpoint(storage.path()).filename() == "checkpoint_000001");
  train::SavedFiles(train::latest_checkpoint(storage.path())).verify();
}

TEST_CASE("a function that throws while its checkpoint is written leaves a whole one",
          "[train][checkpoint][gang]") {
  const Scratch storage;
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    TestMember member(gang, storage.path());
    Context ctx(member, options_with(1));
    MixedTraining training{ctx};
    ctx.checkpoint(training.net, training.optimizer);
    training.step(0);
    const auto saving = ctx.begin_checkpoint(training.net, training.optimizer);
    if (ctx.rank() == 1) throw std::runtime_error("out of patience");
    training.step(1);
  });
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Catch::Contains("rank 1"));
  CHECK(outcomes[1].message == "out of patience");
  train::SavedFiles(train::latest_checkpoint(storage.path())).verify();
}

TEST_CASE("ranks that are killed at any moment leave a whole checkpoint",
          "[train][checkpoint][gang]") {
  const int stage = GENERATE(0, 3);
  const Scratch storage;
  save_after(0, {2, stage}, storage.path());
  for (int round = 0; round < 6; ++round) {
    const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
      TestMember member(gang, storage.path(), train::latest_checkpoint(storage.path()));
      Context ctx(member, options_with(stage));
      MixedTraining training{ctx};
      if (gang.rank() == round % 2) ::ualarm(static_cast<useconds_t>(20'000 * (1 + round)), 0);
      for (std::uint64_t i = 0;; ++i) {
        training.step(i);
        ctx.begin_checkpoint(training.net, training.optimizer);
      }
    });
    CHECK(outcomes[static_cast<std::size_t>(round % 2)].signal == SIGALRM);
    CHECK(outcomes[static_cast<std::size_t>(1 - round % 2)].type == "GangBroken");
    train::SavedFiles(train::latest_checkpoint(storage.path())).verify();
  }
}

TEST_CASE("Python puts the tensors of a sharded checkpoint together", "[train][checkpoint][gang]") {
  if (!test::has_interpreter(TROUPE_READERS_PYTHON, "Python package safetensors")) return;
  const Scratch storage;
  save_after(1, {3, 3}, storage.path());
  REQUIRE(run(1, 0, [&](Context&) {
            Mixed net;
            train::load(net, train::latest_checkpoint(storage.path()));
            auto sums = std::ofstream(storage.path() / "sums");
            for (const auto& item : net->named_parameters()) {
              const auto weights = torch::arange(item.value().numel(), torch::kFloat64);
              sums << item.key() << ' '
                   << fmt::format("{:.9f}", item.value().reshape(-1).dot(weights).item<double>())
                   << '\n';
            }
          }) == "");
  CHECK(test::python(storage.path(), R"(
import json, math, numpy
from safetensors.numpy import load_file
folder = "checkpoint_000000/"
manifest = json.load(open(folder + "checkpoint.json"))
files = {name: load_file(folder + name) for name in manifest["files"] if name.endswith(".safetensors")}
def whole(tensor):
    shape, size = tensor["shape"], math.prod(tensor["shape"])
    memory = numpy.full(size, numpy.nan)
    for piece in tensor["pieces"]:
        values = files[piece["file"]][piece["key"]].reshape(-1)
        memory[piece["first"]:piece["first"] + piece["count"]] = values
    if "strides" not in tensor:
        return memory.reshape(shape)
    return numpy.lib.stride_tricks.as_strided(memory, shape, [8 * stride for stride in tensor["strides"]])
tensors = manifest["models"][0]["tensors"]
wrong = [line for line in open("sums") if abs(whole(tensors[line.split()[0]]).reshape(-1) @ numpy.arange(math.prod(tensors[line.split()[0]]["shape"])) - float(line.split()[1])) > 1e-7]
print(len(open("sums").readlines()), wrong, manifest["ranks"], manifest["zero_stage"])
)",
                     TROUPE_READERS_PYTHON) == "9 [] 3 3\n");
}
