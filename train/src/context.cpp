#include <troupe/train/context.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include <ATen/Parallel.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/optimizer.h>

#include "checkpoint/directory.hpp"
#include "checkpoint/state.hpp"
#include "collective/call.hpp"
#include "context_options.hpp"
#include "parallel/agreement.hpp"
#include "parallel/device.hpp"
#include "parallel/parameter_watch.hpp"
#include "parallel/reducer.hpp"
#include "parallel/reduction_queue.hpp"
#include "zero/optimizer_kind.hpp"
#include "zero/optimizer_parts.hpp"

namespace troupe::train {
namespace fs = std::filesystem;

/// The n-th of a context has file n in checkpoints.
struct Context::PreparedModel {
  std::weak_ptr<torch::nn::Module> module;
  std::shared_ptr<Reducer> reducer = {};  // nullptr: nothing is averaged
  std::unique_ptr<ParameterWatch> watch = {};
};

struct Context::Impl {
  ~Impl() { leave(); }
  void leave();

  Member& member;
  ContextOptions options;
  c10::Device device;
  int exceptions;  // in flight when the context was made
  std::unique_ptr<Communicator> communicator;
  // Over main memory, where the communicator is not.
  std::unique_ptr<Communicator> control;
  std::shared_ptr<ReductionQueue> queue;  // goes before the communicators, which it uses
  std::vector<PreparedModel> models;      // go before the queue
  int optimizers = 0;                     // prepared so far
  int unsynchronized = 0;                 // guards of no_sync() that live
  int epoch = -1;
  bool stopped = false;
};

namespace {

constexpr const char* kCommunicator = "context";  // its name in the gang
constexpr const char* kControl = "context control";

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module, bool only_trained) {
  std::vector<NamedTensor> found;
  for (const auto& item : module.named_parameters()) {
    const auto& tensor = item.value();
    const bool shared =
        std::any_of(found.begin(), found.end(), [&](auto& f) { return f.tensor.is_same(tensor); });
    if (tensor.defined() && !shared && (tensor.requires_grad() || !only_trained))
      found.push_back({item.key(), tensor});
  }
  return found;
}

std::vector<NamedTensor> buffers_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> found;
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) found.push_back({item.key(), item.value()});
  }
  return found;
}

/// Throws std::invalid_argument for a stage that there is not.
void check_stage(const ZeroOptions& options) {
  if (options.stage >= 0 && options.stage <= 2) return;
  throw std::invalid_argument(fmt::format(
      "ContextOptions::zero.stage is {}; it can be 0 (every rank has the whole state of "
      "the optimizers), 1 (every rank has a part of it) or 2 (and a part of the gradients)",
      options.stage));
}

/// The optimizer's parameters with the names that prepared models have for them. Throws
/// std::invalid_argument for one that the optimizer has twice, that no prepared model has, which may
/// differ between the ranks, or that is not on `device`.
std::vector<std::vector<NamedTensor>> groups_of(
    const torch::optim::Optimizer& optimizer,
    const std::vector<std::shared_ptr<torch::nn::Module>>& models, c10::Device device) {
  std::unordered_map<const void*, std::string> names;
  for (const auto& model : models) {
    for (const auto& item : model->named_parameters())
      names.emplace(item.value().unsafeGetTensorImpl(), item.key());
  }
  std::vector<std::vector<NamedTensor>> groups;
  std::unordered_set<const void*> seen;
  for (const auto& group : optimizer.param_groups()) {
    auto& named = groups.emplace_back();
    for (const auto& tensor : group.params()) {
      const auto name = names.find(tensor.unsafeGetTensorImpl());
      if (name == names.end() || tensor.device() != device) {
        throw std::invalid_argument(fmt::format(
            "parameter {} of the optimizer is {}: with ContextOptions::zero prepare the model "
            "first, and make the optimizer with the parameters that it has then",
            seen.size(),
            name == names.end()
                ? "of no model that was prepared"
                : fmt::format("on {}, not on {}", tensor.device().str(), device.str())));
      }
      named.push_back({name->second, tensor});
      if (!seen.insert(tensor.unsafeGetTensorImpl()).second) {
        throw std::invalid_argument(
            fmt::format("the optimizer has parameter {} twice; give it each parameter once",
                        named.back().name));
      }
    }
  }
  return groups;
}

/// nullptr: the optimizer has its whole state.
OptimizerParts* parts_of(const torch::optim::Optimizer& optimizer, const ContextOptions& options) {
  if (options.zero.stage == 0) return nullptr;
  const auto* prepared = dynamic_cast<const detail::ShardedOptimizer*>(&optimizer);
  if (prepared == nullptr) {
    throw std::logic_error(
        "with ContextOptions::zero an optimizer must be what prepare() returned; keep that as "
        "`auto optimizer = ctx.prepare(...)`");
  }
  return static_cast<OptimizerParts*>(prepared->shards());
}

/// 0: as it was. A worker process has been given its threads as it started.
int threads_of(const ContextOptions& options) {
  if (options.threads >= 0) return options.threads;
  return this_gang() != nullptr ? 0 : 1;
}

}  // namespace

// Also where the constructor of the context throws: the others must not wait for this rank.
void Context::Impl::leave() {
  const bool thrown = std::uncaught_exceptions() > exceptions;
  for (auto* each : {communicator.get(), control.get()}) {
    if (each != nullptr && thrown) each->abort("its function was left by an exception");
  }
  if (communicator || member.gang().size() == 1) return;
  for (const auto* name : {kCommunicator, kControl}) {
    decline(member.gang(), name,
            thrown ? "has left by an exception before it made the communicator"
                   : "has finished before it made the communicator");
  }
}

Context::Context(Member& member) : Context(member, options_from(member.settings())) {}

Context::Context(Member& member, ContextOptions options)
    : impl_(new Impl{
          member, std::move(options), c10::kCPU, std::uncaught_exceptions(), {}, {}, {}, {}}) {
  check_stage(impl_->options.zero);
  impl_->device = device_of_rank(member.gang().local_rank());
  if (const int threads = threads_of(impl_->options); threads > 0) at::set_num_threads(threads);
  if (member.restore_from().empty()) return;
  // Every rank starts at the same epoch, and only rank 0 need see the file.
  const auto epoch =
      rank() == 0
          ? std::to_string(read_info(fs::path(member.restore_from()) / "checkpoint.json").epoch)
          : "";
  impl_->epoch = std::stoi(broadcast_bytes(communicator(), epoch, device(), 0));
}

Context::~Context() = default;

const ContextOptions& Context::options() const { return impl_->options; }
int Context::rank() const { return impl_->member.gang().rank(); }
int Context::local_rank() const { return impl_->member.gang().local_rank(); }
int Context::world_size() const { return impl_->member.gang().size(); }
std::uint64_t Context::seed() const { return impl_->member.seed(); }
c10::Device Context::device() const { return impl_->device; }

Communicator& Context::communicator() {
  if (impl_->communicator) return *impl_->communicator;
  auto& gang = impl_->member.gang();
  using Backend = ContextOptions::Backend;
  const auto& options = impl_->options;
  HostOptions host{
      .name = kCommunicator, .timeout = options.timeout, .warn_after = options.warn_after};
  if (options.backend == Backend::Nccl ||
      (options.backend == Backend::Auto && impl_->device.is_cuda())) {
    NcclOptions nccl{
        .name = kCommunicator, .timeout = options.timeout, .warn_after = options.warn_after};
    if (impl_->device.is_cuda()) nccl.device = impl_->device.index();
    auto made = make_nccl_communicator(gang, nccl);
    // NCCL compares nothing, and a few bytes are faster in main memory.
    if (gang.size() > 1) {
      host.name = kControl;
      host.chunk_bytes = 16 << 10;
      impl_->control = make_host_communicator(gang, host);
    }
    impl_->communicator = std::move(made);
  } else {
    impl_->communicator = make_host_communicator(gang, host);
  }
  return *impl_->communicator;
}

void Context::prepare_module(std::shared_ptr<torch::nn::Module> module) {
  if (!module) throw std::invalid_argument("prepare: the model is empty");
  auto& models = impl_->models;
  const auto known = std::find_if(models.begin(), models.end(),
                                  [&](auto& each) { return each.module.lock() == module; });
  const auto& from = impl_->member.restore_from();
  module->to(device());
  if (known == models.end() && rank() == 0 && !from.empty())
    load_module(*module, from / fmt::format("model{}.pt", models.size()), device());
  PreparedModel prepared{.module = module};
  average_gradients(prepared, *module);
  // Where that throws, what there was of it stays, and says in backward what has changed.
  if (known != models.end())
    *known = std::move(prepared);
  else
    models.push_back(std::move(prepared));
}

/// Of a parameter that another model has too, whose gradient two reducers would cut.
void Context::refuse_shared(const PreparedModel& prepared,
                            const std::vector<NamedTensor>& parameters) const {
  std::unordered_set<const void*> others;
  for (const auto& model : impl_->models) {
    if (!model.reducer || model.module.lock() == prepared.module.lock()) continue;
    for (const auto& shard : model.reducer->shards()) {
      for (const auto& parameter : shard->parameters())
        others.insert(parameter.tensor.unsafeGetTensorImpl());
    }
  }
  for (const auto& [name, tensor] : parameters) {
    if (!others.contains(tensor.unsafeGetTensorImpl())) continue;
    throw std::invalid_argument(fmt::format(
        "parameter {} is in two models: with ContextOptions::zero.stage 2 prepare one module that "
        "has both in it, or use stage 1",
        name));
  }
}

void Context::average_gradients(PreparedModel& prepared, const torch::nn::Module& module) {
  if (impl_->queue) impl_->queue->refuse_while_open();
  ModelLayout model{parameters_of(module, false), buffers_of(module), parameters_of(module, true)};
  auto& comm = communicator();
  const auto& options = impl_->options.data_parallel;
  check_models_agree(comm, model, options, device());
  broadcast_tensors(comm, model.parameters, device(), 0);
  broadcast_tensors(comm, model.buffers, device(), 0);
  if (world_size() == 1) return;
  if (impl_->options.zero.stage == 2) refuse_shared(prepared, model.trained);
  prepared.watch = std::make_unique<ParameterWatch>(std::move(model.parameters));
  if (model.trained.empty()) return;
  if (!impl_->queue)
    impl_->queue = std::make_shared<ReductionQueue>(impl_->control ? *impl_->control : comm);
  const auto keeps = impl_->options.zero.stage < 2 ? Reducer::Keeps::All : Reducer::Keeps::Part;
  prepared.reducer = Reducer::make(impl_->queue, comm, std::move(model.trained), options, keeps);
  prepared.reducer->set_synchronized(impl_->unsynchronized == 0);
}

std::shared_ptr<detail::OptimizerShards> Context::prepare_optimizer(
    torch::optim::Optimizer& optimizer) {
  const bool is_cut = impl_->options.zero.stage > 0;
  const auto* kind = OptimizerKind::of(optimizer);
  if (is_cut && kind == nullptr) {
    throw std::invalid_argument(
        fmt::format("ZeRO cannot cut the state of a {}: ContextOptions::zero is for {}; use "
                    "one of those, or stage 0",
                    c10::demangle(typeid(optimizer).name()), OptimizerKind::known()));
  }
  restore_optimizer(optimizer);
  if (!is_cut) return nullptr;
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  for (const auto& model : impl_->models) {
    if (auto module = model.module.lock()) models.push_back(std::move(module));
  }
  auto groups = groups_of(optimizer, models, device());
  if (world_size() == 1) return nullptr;
  auto& comm = communicator();
  check_optimizers_agree(comm, kind->name(), groups, device());
  auto& control = impl_->control ? *impl_->control : comm;
  if (impl_->options.zero.stage < 2)
    return std::make_shared<OptimizerParts>(*kind, std::move(groups), comm, control);
  std::vector<std::vector<std::shared_ptr<GradientShard>>> shards;
  for (const auto& model : impl_->models) {
    if (model.reducer) shards.push_back(model.reducer->shards());
  }
  return std::make_shared<OptimizerParts>(*kind, std::move(groups), shards, comm, control);
}

double Context::clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm) {
  auto* parts = parts_of(optimizer, impl_->options);
  if (parts != nullptr && parts->cuts_gradients()) return parts->clip_gradients(max_norm);
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  return torch::nn::utils::clip_grad_norm_(parameters, max_norm);
}

void Context::restore_optimizer(torch::optim::Optimizer& optimizer) {
  const int number = impl_->optimizers++;
  const auto& from = impl_->member.restore_from();
  if (from.empty()) return;
  const auto bytes = rank() == 0 ? read_file(from / fmt::format("optimizer{}.pt", number)) : "";
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> own;
  for (const auto& group : optimizer.param_groups()) own.push_back(group.options().clone());
  load_optimizer(optimizer, broadcast_bytes(communicator(), bytes, device(), 0), device());
  if (!impl_->member.reconfigured()) return;
  // The checkpoint has the options of who wrote it. The function has just made the optimizer with
  // those of its configuration.
  for (std::size_t group = 0; group < own.size(); ++group)
    optimizer.param_groups()[group].set_options(std::move(own[group]));
}

Context::NoSync::NoSync(Context& context) : context_(context) { context_.count_unsynchronized(1); }
Context::NoSync::~NoSync() { context_.count_unsynchronized(-1); }

void Context::count_unsynchronized(int guards) {
  impl_->unsynchronized += guards;
  for (auto& model : impl_->models) {
    if (model.reducer) model.reducer->set_synchronized(impl_->unsynchronized == 0);
  }
}

Context::Epochs Context::epochs(int count) { return {*this, impl_->epoch + 1, count}; }

bool Context::begin_epoch(int epoch) {
  if (impl_->stopped) return false;
  impl_->epoch = epoch;
  return true;
}

DistributedSampler Context::sampler(std::size_t rows, SamplerOptions options) const {
  options.seed += seed();
  return DistributedSampler(rows, rank(), world_size(), options);
}

Loader Context::loader(const Dataset& data, std::int64_t batch, int epoch,
                       SamplerOptions options) const {
  auto rows = sampler(static_cast<std::size_t>(data.data.size(0)), options);
  rows.set_epoch(static_cast<std::uint64_t>(epoch));
  return Loader(data, rows.indices(), batch, device());
}

Verdict Context::report(const Metrics& metrics, const Checkpoint& checkpoint) {
  const auto verdict = impl_->member.report(metrics, checkpoint.directory);
  impl_->stopped = impl_->stopped || verdict == Verdict::Stop;
  return verdict;
}

Checkpoint Context::write_checkpoint(
    const std::vector<std::shared_ptr<torch::nn::Module>>& models,
    const std::vector<const torch::optim::Optimizer*>& optimizers) {
  const auto& storage = impl_->member.storage();
  if (storage.empty()) return {};
  std::vector<std::unique_ptr<torch::optim::Optimizer>> whole(optimizers.size());
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    if (auto* parts = parts_of(*optimizers[i], impl_->options))
      whole[i] = parts->whole(*optimizers[i]);
  }
  if (rank() != 0) return {};
  PendingCheckpoint pending(storage);
  for (std::size_t i = 0; i < models.size(); ++i)
    save_module(*models[i], pending.file(fmt::format("model{}.pt", i)));
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    save_optimizer(whole[i] ? *whole[i] : *optimizers[i],
                   pending.file(fmt::format("optimizer{}.pt", i)));
  write_info({.epoch = impl_->epoch,
              .models = static_cast<int>(models.size()),
              .optimizers = static_cast<int>(optimizers.size()),
              .world_size = world_size()},
             pending.file("checkpoint.json"));
  return {pending.commit()};
}

}  // namespace troupe::train
