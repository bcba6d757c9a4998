// Trains a small transformer to write text, character by character, on one rank or many. Each step
// has the same rows whatever the number of ranks, and so the same loss up to rounding.
//
//   char_transformer [--address HOST:PORT] [--data FILE] [--ranks N] [--gpus N] [--steps N]
//                    [--batch N] [--zero 0|1|2|3] [--precision float32|bfloat16|float16]
//                    [--layers N] [--heads N] [--width N] [--context N] [--rate X] [--warmup N]
//                    [--report-every N] [--sample N] [--save-initial FILE.safetensors]
//
// FILE is a plain text, of which nine tenths train and the last tenth validates. Without it the
// text is made up: numbers in words. The driver reads it and puts it into the object store. --batch
// is of all ranks together, and --gpus of each rank. --save-initial writes the weights before the
// first step, with which tests/examples/char_transformer.py trains the same model in PyTorch.
// With tinyshakespeare (1.1 MB of Shakespeare's plays, in one file), on two cores that other
// programs used too, it prints:
//
//   1115394 characters, of which 65 are different; ranks: 2
//   step 250: loss 2.748184, of validation 2.415201; 1310 tokens/s
//   step 500: loss 2.338873, of validation 2.259512; 1548 tokens/s
//   step 750: loss 2.170462, of validation 2.134172; 1127 tokens/s
//   step 1000: loss 2.043071, of validation 2.049688; 1157 tokens/s
//   step 1250: loss 1.937768, of validation 1.994891; 993 tokens/s
//   step 1500: loss 1.867207, of validation 1.951912; 1294 tokens/s
//   step 1750: loss 1.806107, of validation 1.919309; 928 tokens/s
//   step 2000: loss 1.777108, of validation 1.898660; 474 tokens/s
//   a sample:
//   Foun to his Lestichey no stone:
//   O be her, bright, whiled look for hath mutter of Goventity.
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>

#include <torch/nn/functional/loss.h>
#include <CLI/CLI.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/run.hpp>
#include <troupe/train/safetensors.hpp>
#include <troupe/train/schedule.hpp>
#include <troupe/train/tensor.hpp>
#include <troupe/troupe.hpp>

#include "char_options.hpp"
#include "text.hpp"
#include "transformer.hpp"

namespace train = troupe::train;

namespace {

/// The rate rises on a line and falls on a cosine to a tenth. `step`: how many were made.
void set_rate(torch::optim::Optimizer& optimizer, const Config& config, std::int64_t step) {
  const train::WarmupCosineLR schedule{.total_num_steps = config.steps,
                                       .warmup_num_steps = config.warmup,
                                       .cos_min_ratio = 0.1,
                                       .warmup_type = train::WarmupType::Linear};
  const auto rate = train::step_after(schedule, step, config.rate).lr;
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

at::Tensor loss_of(train::Context& ctx, transformer::Transformer& model,
                   const train::Batch& batch) {
  const auto autocast = ctx.autocast();
  const auto logits = model->forward(batch.data.to(torch::kLong));
  return torch::nn::functional::cross_entropy(logits.flatten(0, 1).to(torch::kFloat),
                                              batch.target.to(torch::kLong).flatten());
}

/// Of this rank's rows.
at::Tensor validation_loss(train::Context& ctx, transformer::Transformer& model,
                           const train::Dataset& rows, const Config& config) {
  const torch::NoGradGuard no_gradients;
  auto sum = at::zeros({}, at::device(ctx.device()));
  const auto loader =
      ctx.loader(rows, config.batch / ctx.world_size(), /*epoch=*/0, {.shuffle = false});
  for (const auto& part : loader) sum += loss_of(ctx, model, part);
  return sum / static_cast<double>(loader.size());
}

/// What the steps since the last report have lost, and how long they took.
class Interval {
 public:
  explicit Interval(c10::Device device) : sum_(at::zeros({}, at::device(device))) {}

  void add(const at::Tensor& loss) {
    sum_ += loss.detach();
    ++steps_;
  }
  std::int64_t steps() const { return steps_; }
  at::Tensor loss() const { return sum_ / static_cast<double>(steps_); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  at::Tensor sum_;
  std::int64_t steps_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Averages over the ranks what has been lost since the last report and on the validation's rows.
void report(train::Context& ctx, transformer::Transformer& model, const train::Dataset& validation,
            const Config& config, std::int64_t step, const Interval& interval) {
  const auto training_loss = interval.loss().item<float>();  // waits for the GPU, if there is one
  const auto seconds = interval.seconds();
  // For stage 3 of ZeRO: a rank that waits for the average gives no other rank parameters.
  const auto whole = ctx.gathered(model);
  auto losses = at::stack({at::full({}, training_loss, at::device(ctx.device())),
                           validation_loss(ctx, model, validation, config)});
  ctx.communicator().all_reduce(losses.data_ptr(), 2, train::DataType::Float32,
                                train::ReduceOp::Average);
  const auto tokens = interval.steps() * config.batch * config.size.context;
  ctx.report({{"step", step},
              {"training_loss", losses[0].item<float>()},
              {"validation_loss", losses[1].item<float>()},
              {"tokens_per_second", static_cast<double>(tokens) / seconds}});
}

/// What the model writes after the text's first character, on rank 0.
std::string sample(train::Context& ctx, transformer::Transformer& model, const text::Text& text,
                   const Config& config) {
  const auto whole = ctx.gathered(model);  // for stage 3 of ZeRO; on every rank
  if (ctx.rank() != 0) return "";
  const auto autocast = ctx.autocast();
  const auto first = text.tokens.slice(0, 0, 1).to(ctx.device(), torch::kLong);
  const auto tokens = transformer::written(model, first, config.sample, config.size.context);
  std::string written;
  for (std::int64_t at = 0; at < tokens.size(0); ++at)
    written += text.characters.at(tokens[at].item<std::uint8_t>());
  return written;
}

// [fit]
/// What every rank runs. -> a sample of what the model writes.
std::string fit(train::Context& ctx, const Config& config) {
  const auto text = config.text.get();
  const auto parts = text::parts(text, config.size.context, config.batch);
  torch::manual_seed(0);
  transformer::Transformer model(config.size);
  if (ctx.rank() == 0 && !config.save_initial.empty())
    train::safetensors::save(model, config.save_initial);
  model = ctx.prepare(model);
  auto optimizer = ctx.prepare(transformer::adam_w(model, config.rate));
  const auto batches_of_epoch = parts.training.data.size(0) / config.batch;
  const auto epochs = (config.steps + batches_of_epoch - 1) / batches_of_epoch;
  std::int64_t step = 0;
  Interval interval(ctx.device());
  for (const int epoch : ctx.epochs(static_cast<int>(epochs))) {
    for (auto& batch : ctx.loader(parts.training, config.batch / ctx.world_size(), epoch)) {
      if (step == config.steps) break;
      const auto loss = loss_of(ctx, model, batch);
      optimizer.zero_grad();
      ctx.scaled(loss).backward();
      ctx.clip_grad_norm(optimizer, 1.0);
      set_rate(optimizer, config, step);
      optimizer.step();
      interval.add(loss);
      if (++step % config.report_every != 0 && step != config.steps) continue;
      report(ctx, model, parts.validation, config, step, interval);
      interval = Interval(ctx.device());
    }
  }
  return sample(ctx, model, text, config);
}
// [/fit]

troupe::Verdict print(const train::Report& report) {
  const auto& metrics = report.metrics;
  std::cout << std::fixed << std::setprecision(0) << "step " << metrics.at("step") << ": loss "
            << std::setprecision(6) << metrics.at("training_loss") << ", of validation "
            << metrics.at("validation_loss") << std::setprecision(0) << "; "
            << metrics.at("tokens_per_second") << " tokens/s\n"
            << std::flush;
  return troupe::Verdict::Continue;
}

void run(const Options& options) {
  auto config = options.config;
  const auto text = options.data.empty() ? text::made_up() : text::read(options.data);
  (void)text::parts(text, config.size.context, config.batch);  // throws if the text is too short
  config.size.vocabulary = static_cast<std::int64_t>(text.characters.size());
  config.text = troupe::put(text);
  if (options.data.empty()) std::cout << "without --data the text is made up: numbers in words\n";
  std::cout << text.tokens.size(0) << " characters, of which " << config.size.vocabulary
            << " are different; ranks: " << options.ranks << '\n';
  const auto result = train::run<fit>(
      config,
      {.workers = options.ranks,
       .each = {.gpus = options.gpus},
       .context = {.zero = {.stage = options.zero}, .mixed_precision = {.type = options.precision}},
       .on_report = print});
  std::cout << "a sample:\n" << *result.value << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    Options options;
    CLI::App app{"Trains a small transformer to write text, on one rank or many."};
    add_to(app, options);
    CLI11_PARSE(app, argc, argv);
    check(options);
    run(options);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "char_transformer: " << error.what() << '\n';
    return 1;
  }
}
