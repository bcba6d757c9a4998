#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/detail/archive.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/schedule.hpp>

/// DeepSpeed's configuration and its engine, for programs that have them in Python: the same JSON,
/// and the same lines of a training loop. docs/deepspeed.md has what each key does.
namespace troupe::train::deepspeed {

/// Rows: train = micro x accumulation x ranks.
struct BatchSizes {
  std::int64_t train = 0;         ///< of one step, on all ranks together
  std::int64_t micro = 0;         ///< of one backward, on one rank
  std::int64_t accumulation = 0;  ///< backwards of one step
};

/// The block `optimizer`.
struct OptimizerOptions {
  enum class Type : std::uint8_t { Adam, AdamW, SGD };
  Type type = Type::Adam;
  double lr = 0.001;
  std::array<double, 2> betas{0.9, 0.999};  ///< of Adam and AdamW
  double eps = 1e-8;                        ///< of Adam and AdamW
  double weight_decay = 0;
  double momentum = 0;    ///< of SGD
  double dampening = 0;   ///< of SGD
  bool nesterov = false;  ///< of SGD
};

/// What a configuration says. It travels to ranks, alone or as a field of what their function is
/// given.
struct Config {
  std::optional<std::int64_t> train_batch_size = {};
  std::optional<std::int64_t> train_micro_batch_size_per_gpu = {};
  std::optional<std::int64_t> gradient_accumulation_steps = {};
  std::optional<OptimizerOptions> optimizer = {};
  std::optional<Schedule> scheduler = {};
  /// The norm above which gradients are scaled down; 0: they are not. DeepSpeed clips at 1 where
  /// nothing is said, since 0.19.
  double gradient_clipping = 1;
  ZeroOptions zero_optimization = {};
  MixedPrecision mixed_precision = {};  ///< of `fp16`, `bf16` and `torch_autocast`
  bool ignore_unused_parameters = false;
  /// Keys that tell DeepSpeed how to work and change no result. They have no effect here, which
  /// rank 0 logs as it makes an Engine. Sorted.
  std::vector<std::string> without_effect = {};

  /// Throws std::invalid_argument where no train_batch_size and no train_micro_batch_size_per_gpu
  /// is given, and where train = micro x accumulation x ranks cannot be, with the numbers.
  BatchSizes batch_sizes(int ranks) const;
  /// For RunOptions::context: `given` with what the configuration says of ZeRO, mixed precision and
  /// unused parameters.
  ContextOptions context(ContextOptions given = {}) const;
};

/// Reads a configuration. Throws std::invalid_argument, naming the key, for what is no JSON, a key
/// that stands twice, is unknown or has another type than its values, and for what DeepSpeed can do
/// and Troupe cannot. No key is ignored in silence: Config::without_effect has those that have no
/// effect here. Comments are allowed. `name`: what errors call it.
Config parse(std::string_view json, const std::string& name = "the DeepSpeed configuration");
/// Reads the configuration in a file as parse() does. Throws std::invalid_argument where it cannot
/// be read.
Config read(const std::filesystem::path& file);

namespace detail {

/// A prepared optimizer, whatever its type.
struct EngineOptimizer {
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  std::function<void()> zero_grad;
  std::vector<double> rates;  ///< of each group, with which the program has made it
};
using MakeOptimizer = std::function<EngineOptimizer(Context&, std::vector<at::Tensor> parameters)>;

std::vector<double> rates_of(const torch::optim::Optimizer& optimizer);

template <train::detail::OptimizerLike O>
EngineOptimizer prepared(Context& context, O optimizer) {
  auto rates = rates_of(optimizer);
  const std::shared_ptr<PreparedOptimizer<O>> made(
      new PreparedOptimizer<O>(context.prepare(std::move(optimizer))));
  return {.optimizer = made, .zero_grad = [made] { made->zero_grad(); }, .rates = std::move(rates)};
}

/// Throws std::invalid_argument where the configuration names none.
MakeOptimizer configured(const Config& config);
/// Throws std::invalid_argument where the configuration names one.
void check_names_no_optimizer(const Config& config);

}  // namespace detail

/// A model and its optimizer, trained as a configuration says: what deepspeed.initialize returns.
///
///   const auto loss = engine.forward([&] { return torch::mse_loss(model->forward(x), y); });
///   engine.backward(loss);
///   engine.step();
///
/// These three lines are written for each micro-batch; step() updates the model at every
/// BatchSizes::accumulation-th call, and does nothing at the others. Every rank makes the same
/// calls. An exception that backward() throws while gradients are averaged reaches all ranks: they
/// may all call zero_grad() and go on. Any other one is known to its rank alone, and is to leave
/// the function.
///
/// Used by the thread of the Context, which outlives it. An Engine that was moved from can be
/// assigned to and destroyed.
class Engine {
 public:
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  const BatchSizes& batch_sizes() const;
  /// This rank's micro-batches of an epoch.
  Loader loader(const Dataset& data, int epoch, SamplerOptions options = {}) const;

  /// Calls `compute` under Context::autocast(). -> what it returned.
  template <class F>
  decltype(auto) forward(F&& compute) const {
    const auto autocast = context().autocast();
    return std::forward<F>(compute)();
  }
  /// `loss` is that of one micro-batch, a mean over its rows. It is divided by the number of
  /// micro-batches of a step, and scaled for float16. Before a step that updates, gradients are
  /// averaged over the ranks.
  void backward(const at::Tensor& loss);
  /// -> whether the model was updated: gradients clipped, the optimizer stepped, gradients dropped,
  /// the schedule moved on. With float16 an update whose gradients are not finite is left out.
  /// Throws std::logic_error where there was no backward() since the last call.
  bool step();
  /// Drops the gradients. The next micro-batch is the first one of a step.
  void zero_grad();
  /// Whether the next step() updates the model.
  bool is_gradient_accumulation_boundary() const;

  /// Writes the model, the optimizer and the number of its steps, as Context::checkpoint does. They
  /// are the only model and optimizer of the run then. A run that continues from it goes on in the
  /// schedule.
  Checkpoint checkpoint() const;

  std::int64_t global_steps() const;   ///< that have updated the model, also before a checkpoint
  std::int64_t skipped_steps() const;  ///< Context::skipped_steps()
  double learning_rate() const;        ///< of the next update, of the first group
  /// The norm of the gradients of the last update before they were clipped. None: there was no
  /// update, or gradients are not clipped.
  std::optional<double> gradient_norm() const;
  torch::optim::Optimizer& optimizer();
  Context& context() const;

 private:
  struct Impl;
  template <class M>
  friend Engine initialize(Context& context, const M& model, const Config& config);
  template <class M, class Make>
  friend Engine initialize(Context& context, const M& model, const Config& config, Make make);

  Engine(Context& context, std::shared_ptr<torch::nn::Module> model, const Config& config,
         const detail::MakeOptimizer& make);
  std::unique_ptr<Impl> impl_;
};

/// Prepares the model and the optimizer that the configuration names. A collective. Throws what
/// Context::prepare throws, and std::invalid_argument for a configuration without an optimizer,
/// with batch sizes that cannot be, and where the context has other options than Config::context
/// gives.
template <class M>
Engine initialize(Context& context, const M& model, const Config& config) {
  return {context, train::detail::module_of(model), config, detail::configured(config)};
}
/// Does the same for a configuration without an optimizer. `make` gets the model's trained
/// parameters as a std::vector<at::Tensor>, and returns the optimizer, which is then prepared.
template <class M, class Make>
Engine initialize(Context& context, const M& model, const Config& config, Make make) {
  detail::check_names_no_optimizer(config);
  return {context, train::detail::module_of(model), config,
          [&make](Context& ctx, std::vector<at::Tensor> parameters) {
            return detail::prepared(ctx, make(std::move(parameters)));
          }};
}

}  // namespace troupe::train::deepspeed

template <>
struct troupe::EnumRange<troupe::train::deepspeed::OptimizerOptions::Type> {
  static constexpr auto first = troupe::train::deepspeed::OptimizerOptions::Type::Adam;
  static constexpr auto last = troupe::train::deepspeed::OptimizerOptions::Type::SGD;
};
