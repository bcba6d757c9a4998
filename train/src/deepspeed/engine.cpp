#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <troupe/detail/codec.hpp>
#include <troupe/train/deepspeed.hpp>

#include "log/log.hpp"
#include "parallel/agreement.hpp"

namespace troupe::train::deepspeed {

/// A number that goes into checkpoints as a model does, and comes from rank 0's.
class StepCounter : public torch::nn::Module {
 public:
  StepCounter() : value_(register_buffer("steps", torch::zeros({}, torch::kInt64))) {}
  std::int64_t value() const { return value_.item<std::int64_t>(); }
  void set(std::int64_t value) { value_.fill_(value); }

 private:
  at::Tensor value_;
};

namespace {

const char* name_of(MixedPrecision::Type type) {
  switch (type) {
    case MixedPrecision::Type::BFloat16:
      return "bfloat16";
    case MixedPrecision::Type::Float16:
      return "float16";
    default:
      return "float32";
  }
}

std::string in_words(const ZeroOptions& zero, const MixedPrecision& precision) {
  return fmt::format("ZeRO stage {}{}{}, {}{}", zero.stage,
                     zero.offload_optimizer ? " with its optimizer in main memory" : "",
                     zero.offload_parameters ? ", and parameters too" : "", name_of(precision.type),
                     precision.master_weights ? " with master weights" : "");
}

void check_context(const ContextOptions& has, const Config& config) {
  if (has.scale_learning_rates != LearningRateScaling::None) {
    throw std::invalid_argument(
        "the context multiplies learning rates by its number of ranks, and a DeepSpeed "
        "configuration has the rates for its train_batch_size, whatever the number of ranks: leave "
        "ContextOptions::scale_learning_rates at None");
  }
  const auto bytes_of = [](const ContextOptions& options) {
    return troupe::detail::encode(options).bytes;
  };
  if (bytes_of(has) == bytes_of(config.context(has))) return;
  auto has_words = in_words(has.zero, has.mixed_precision);
  auto wanted = in_words(config.zero_optimization, config.mixed_precision);
  if (has_words == wanted) {
    has_words = "another loss scale, or without find_unused_parameters";
    wanted += " and more";
  }
  throw std::invalid_argument(
      fmt::format("the DeepSpeed configuration says {}, and the context was made with {}: give the "
                  "run `.context = config.context()`",
                  wanted, has_words));
}

/// A rank that accumulates more micro-batches than the others would not come to their collectives.
void check_ranks_agree(Context& context, const Config& config) {
  const auto line = [](const char* key, const std::optional<std::int64_t>& value) {
    return fmt::format("{} {}", key, value ? fmt::to_string(*value) : "not given");
  };
  const auto all = troupe::detail::encode(config).bytes;
  check_options_agree(
      context.communicator(), "DeepSpeed configurations",
      {line("train_batch_size", config.train_batch_size),
       line("train_micro_batch_size_per_gpu", config.train_micro_batch_size_per_gpu),
       line("gradient_accumulation_steps", config.gradient_accumulation_steps),
       fmt::format("gradient_clipping {}", config.gradient_clipping),
       fmt::format("all of it, of which this is the hash: {:x}", std::hash<std::string>()(all))},
      context.device());
}

/// A parameter that two layers share is there once, while Module::parameters() has it twice.
std::vector<at::Tensor> trained_parameters_of(const torch::nn::Module& model) {
  std::vector<at::Tensor> found;
  for (const auto& parameter : layout_of(model).trained) found.push_back(parameter.tensor);
  return found;
}

void tell_without_effect(const Context& context, const Config& config) {
  if (context.rank() != 0 || config.without_effect.empty()) return;
  log::warn(fmt::format("keys of the DeepSpeed configuration that have no effect in Troupe: {}",
                        fmt::join(config.without_effect, ", ")));
}

/// A WarmupLR that does not say to which rate it rises has all groups rise to the first one's.
std::optional<Schedule> complete(std::optional<Schedule> schedule,
                                 const std::vector<double>& rates) {
  auto* warmup = schedule ? std::get_if<WarmupLR>(&*schedule) : nullptr;
  if (warmup != nullptr && !warmup->warmup_max_lr) warmup->warmup_max_lr = rates.front();
  return schedule;
}

bool has_gradient(const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) return true;
    }
  }
  return false;
}

/// Sets those of Adam and AdamW. Other optimizers have none.
void set_betas(torch::optim::OptimizerOptions& options, const std::array<double, 2>& betas) {
  const std::tuple<double, double> pair{betas[0], betas[1]};
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) adam->betas(pair);
  if (auto* adam_w = dynamic_cast<torch::optim::AdamWOptions*>(&options)) adam_w->betas(pair);
}

}  // namespace

struct Engine::Impl {
  Context& context;
  std::shared_ptr<torch::nn::Module> model;
  std::optional<Schedule> schedule;
  double max_norm;
  BatchSizes sizes;
  std::shared_ptr<StepCounter> counter;
  detail::EngineOptimizer optimizer;
  std::int64_t updates = 0;
  std::int64_t calls = 0;  // of step()
  bool has_gradients = false;
  std::optional<double> norm;

  bool is_at_boundary() const { return (calls + 1) % sizes.accumulation == 0; }

  void end_call() {
    has_gradients = false;
    ++calls;
  }

  void follow_schedule() {
    if (!schedule) return;
    auto& groups = optimizer.optimizer->param_groups();
    // The program may have added groups.
    for (auto i = optimizer.rates.size(); i < groups.size(); ++i)
      optimizer.rates.push_back(groups[i].options().get_lr());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto step = step_after(*schedule, updates, optimizer.rates[i]);
      groups[i].options().set_lr(step.lr);
      if (step.betas) set_betas(groups[i].options(), *step.betas);
    }
  }
};

Engine::Engine(Context& context, std::shared_ptr<torch::nn::Module> model, const Config& config,
               const detail::MakeOptimizer& make) try {
  check_ranks_agree(context, config);
  check_context(context.options(), config);
  if (config.scheduler) check_schedule(*config.scheduler);
  const auto sizes = config.batch_sizes(context.world_size());
  context.effective_batch(sizes.train);
  context.prepare(model);
  auto counter = context.prepare(std::make_shared<StepCounter>());
  auto optimizer = make(context, trained_parameters_of(*model));
  auto schedule = complete(config.scheduler, optimizer.rates);
  impl_ = std::unique_ptr<Impl>(new Impl{.context = context,
                                         .model = std::move(model),
                                         .schedule = std::move(schedule),
                                         .max_norm = config.gradient_clipping,
                                         .sizes = sizes,
                                         .counter = std::move(counter),
                                         .optimizer = std::move(optimizer),
                                         .norm = {}});
  impl_->updates = impl_->counter->value();
  impl_->follow_schedule();
  tell_without_effect(context, config);
} catch (const std::exception& failed) {
  tell_failure(context, failed);  // of what is made between the calls of the context
}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

const BatchSizes& Engine::batch_sizes() const { return impl_->sizes; }
Context& Engine::context() const { return impl_->context; }
torch::optim::Optimizer& Engine::optimizer() { return *impl_->optimizer.optimizer; }
std::int64_t Engine::global_steps() const { return impl_->updates; }
std::int64_t Engine::skipped_steps() const { return context().skipped_steps(); }
std::optional<double> Engine::gradient_norm() const { return impl_->norm; }
bool Engine::is_gradient_accumulation_boundary() const { return impl_->is_at_boundary(); }

double Engine::learning_rate() const {
  return impl_->optimizer.optimizer->param_groups().front().options().get_lr();
}

Loader Engine::loader(const Dataset& data, int epoch, SamplerOptions options) const {
  return context().loader(data, impl_->sizes.micro, epoch, options);
}

void Engine::backward(const at::Tensor& loss) {
  const auto count = impl_->sizes.accumulation;
  const auto part = context().scaled(count == 1 ? loss : loss / count);
  if (impl_->is_at_boundary()) {
    part.backward();
  } else {
    const auto no_sync = context().no_sync();
    part.backward();
  }
  impl_->has_gradients = true;
}

bool Engine::step() {
  auto& self = *impl_;
  if (!self.has_gradients)
    throw std::logic_error(
        "step() without a backward() since the last one: call engine.backward(loss) and "
        "engine.step() once for each micro-batch");
  if (!self.is_at_boundary()) {
    self.end_call();
    return false;
  }
  auto& optimizer = *self.optimizer.optimizer;
  if (!has_gradient(optimizer))
    throw std::logic_error(
        "no parameter of the model has got a gradient since the last update: compute the losses "
        "that backward() is given from the model's output");
  std::optional<double> norm;
  if (self.max_norm > 0) norm = self.context.clip_grad_norm(optimizer, self.max_norm);
  const auto skipped = self.context.skipped_steps();
  optimizer.step();
  self.optimizer.zero_grad();
  self.end_call();
  if (self.context.skipped_steps() > skipped) return false;
  self.norm = norm;
  ++self.updates;
  self.follow_schedule();
  return true;
}

void Engine::zero_grad() {
  auto& self = *impl_;
  self.optimizer.zero_grad();
  self.has_gradients = false;
  self.calls -= self.calls % self.sizes.accumulation;
}

Checkpoint Engine::checkpoint() const {
  impl_->counter->set(impl_->updates);
  return context().checkpoint(impl_->model, impl_->counter, *impl_->optimizer.optimizer);
}

namespace detail {

std::vector<double> rates_of(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

MakeOptimizer configured(const Config& config) {
  if (!config.optimizer) {
    throw std::invalid_argument(
        "the DeepSpeed configuration has no optimizer: give it one, or give initialize() a "
        "function that makes one: `[](auto parameters) { return torch::optim::SGD(parameters, "
        "0.1); }`");
  }
  return [options = *config.optimizer](Context& context, std::vector<at::Tensor> parameters) {
    const std::tuple<double, double> betas{options.betas[0], options.betas[1]};
    switch (options.type) {
      case OptimizerOptions::Type::Adam:
        return prepared(context, torch::optim::Adam(std::move(parameters),
                                                    torch::optim::AdamOptions(options.lr)
                                                        .betas(betas)
                                                        .eps(options.eps)
                                                        .weight_decay(options.weight_decay)));
      case OptimizerOptions::Type::AdamW:
        return prepared(context, torch::optim::AdamW(std::move(parameters),
                                                     torch::optim::AdamWOptions(options.lr)
                                                         .betas(betas)
                                                         .eps(options.eps)
                                                         .weight_decay(options.weight_decay)));
      default:
        return prepared(context, torch::optim::SGD(std::move(parameters),
                                                   torch::optim::SGDOptions(options.lr)
                                                       .momentum(options.momentum)
                                                       .dampening(options.dampening)
                                                       .weight_decay(options.weight_decay)
                                                       .nesterov(options.nesterov)));
    }
  };
}

void check_names_no_optimizer(const Config& config) {
  if (!config.optimizer) return;
  throw std::invalid_argument(
      "the DeepSpeed configuration has an optimizer, and initialize() was given a function that "
      "makes one: leave one of the two away");
}

}  // namespace detail
}  // namespace troupe::train::deepspeed
