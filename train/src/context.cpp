#include <troupe/train/context.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>

#include "checkpoint/directory.hpp"
#include "checkpoint/kept_checkpoints.hpp"
#include "checkpoint/restoring/restoring.hpp"
#include "checkpoint/saving/rank_part.hpp"
#include "checkpoint/saving/saver.hpp"
#include "collective/call.hpp"
#include "context_options.hpp"
#include "log/log.hpp"
#include "parallel/agreement.hpp"
#include "parallel/buckets.hpp"
#include "parallel/communicators.hpp"
#include "parallel/device.hpp"
#include "parallel/parameter_watch.hpp"
#include "parallel/reducer.hpp"
#include "parallel/reduction_queue.hpp"
#include "parallel/tensor_type.hpp"
#include "precision/clip.hpp"
#include "precision/gradient_scaling.hpp"
#include "precision/loss_scaler.hpp"
#include "precision/master_weights.hpp"
#include "zero/gathering/gathering.hpp"
#include "zero/moving.hpp"
#include "zero/optimizer/optimizer_kind.hpp"
#include "zero/optimizer/optimizer_parts.hpp"
#include "zero/preparing.hpp"

namespace troupe::train {
namespace fs = std::filesystem;

/// The n-th of a context has file n in checkpoints.
struct Context::PreparedModel {
  std::weak_ptr<torch::nn::Module> module;
  std::shared_ptr<Reducer> reducer = {};  // nullptr: nothing is averaged
  std::unique_ptr<ParameterWatch> watch = {};
  CutModel cut = {};  // with ZeRO's stages 2 and 3
};

struct Context::Impl {
  ~Impl() { leave(); }
  void leave();

  Member& member;
  ContextOptions options;
  c10::Device device;
  int exceptions;  // in flight when the context was made
  Communicators communicators;
  Communicators for_parameters;           // that are cut, and come while gradients are averaged
  std::shared_ptr<ReductionQueue> queue;  // goes before the communicators, which it uses
  std::shared_ptr<Gathering> gathering;   // with ZeRO's stage 3; the queue tells it of ends
  std::vector<PreparedModel> models;      // go before the queue
  int optimizers = 0;                     // prepared so far
  int unsynchronized = 0;                 // guards of no_sync() that live
  int epoch = -1;
  bool stopped = false;
  std::shared_ptr<LossScaler> scaler = {};  // with MixedPrecision::Type::Float16
  std::vector<std::weak_ptr<OptimizerScaling>> scalings =
      {};                                        // one of each optimizer that was prepared
  std::unique_ptr<InitialMasters> masters = {};  // with MixedPrecision::master_weights
  std::vector<std::weak_ptr<OptimizerParts>> have_masters = {};  // as many on each rank
  std::unique_ptr<Restoring> restoring = {};  // where the run continues from a checkpoint
  std::unique_ptr<Saver> saver = {};          // from the first checkpoint on
  std::unique_ptr<KeptCheckpoints> kept = {};
};

namespace {

constexpr const char* kCommunicator = "context";  // its name in the gang
constexpr const char* kForParameters = "context parameters";
constexpr const char* kForCheckpoints = "context checkpoints";
constexpr const char* kThrown = "its function was left by an exception";

std::vector<std::shared_ptr<Flat>> values_of(const CutModel& cut) {
  std::vector<std::shared_ptr<Flat>> values;
  for (const auto& bucket : cut) values.push_back(bucket.values);
  return values;
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
  try {
    if (gathering && !thrown) gathering->meet();  // others may still need parameters
  } catch (const std::exception&) {
    // Others have ended otherwise, which is told of where it matters.
  }
  for (const auto* each : {&communicators, &for_parameters}) {
    if (thrown) each->abort(kThrown);
  }
  if (saver && thrown) saver->abort(kThrown);
  try {
    if (saver) saver->finish();
  } catch (const std::exception& error) {
    if (!thrown) log::warn(fmt::format("the last checkpoint was not written: {}", error.what()));
  }
  if (member.gang().size() == 1) return;
  const auto* why = thrown ? "has left by an exception before it made the communicator"
                           : "has finished before it made the communicator";
  if (!communicators.device) decline_communicators(member.gang(), kCommunicator, why);
  if (!for_parameters.device && options.zero.stage == 3)
    decline_communicators(member.gang(), kForParameters, why);
  if (!saver && !member.storage().empty()) decline(member.gang(), kForCheckpoints, why);
}

Context::Context(Member& member) : Context(member, options_from(member.settings())) {}

Context::Context(Member& member, ContextOptions options)
    : impl_(new Impl{
          member, std::move(options), c10::kCPU, std::uncaught_exceptions(), {}, {}, {}, {}, {}}) {
  check(impl_->options.zero);
  impl_->kept = std::make_unique<KeptCheckpoints>(impl_->options.checkpoints);
  const auto& precision = impl_->options.mixed_precision;
  if (precision.type == MixedPrecision::Type::Float16)
    impl_->scaler = std::make_shared<LossScaler>(precision.loss_scale);
  if (precision.master_weights) impl_->masters = std::make_unique<InitialMasters>(precision.type);
  impl_->device = device_of_rank(member.gang().local_rank());
  if (const int threads = threads_of(impl_->options); threads > 0) at::set_num_threads(threads);
  if (member.restore_from().empty()) return;
  auto files = rank() == 0 ? std::make_unique<SavedFiles>(member.restore_from()) : nullptr;
  auto& comm = communicator();
  impl_->restoring = std::make_unique<Restoring>(member.restore_from(), std::move(files), comm,
                                                 impl_->communicators.control());
  const auto& from = impl_->restoring->manifest();
  impl_->epoch = from.epoch;
  if (impl_->scaler && from.loss_scale) impl_->scaler->restore(*from.loss_scale);
}

Context::~Context() = default;

const ContextOptions& Context::options() const { return impl_->options; }
int Context::rank() const { return impl_->member.gang().rank(); }
int Context::local_rank() const { return impl_->member.gang().local_rank(); }
int Context::world_size() const { return impl_->member.gang().size(); }
std::uint64_t Context::seed() const { return impl_->member.seed(); }
c10::Device Context::device() const { return impl_->device; }

Communicator& Context::communicator() {
  auto& made = impl_->communicators;
  if (!made.device)
    made = make_communicators(impl_->member.gang(), impl_->options, device(), kCommunicator);
  return *made.device;
}

void Context::prepare_module(std::shared_ptr<torch::nn::Module> module) {
  if (!module) throw std::invalid_argument("prepare: the model is empty");
  if (impl_->queue) impl_->queue->refuse_while_open();
  meet();
  auto& models = impl_->models;
  const auto known = std::find_if(models.begin(), models.end(),
                                  [&](auto& each) { return each.module.lock() == module; });
  if (known != models.end() && impl_->gathering)
    impl_->gathering->dissolve(values_of(std::exchange(known->cut, {})));
  if (impl_->masters || cuts_values())
    move_all_but_trained(*module, device());
  else
    module->to(device());
  if (known == models.end() && impl_->masters) impl_->masters->widen(*module, living_models());
  if (known == models.end() && impl_->restoring)
    impl_->restoring->load_model(*module, models.size());
  PreparedModel prepared{.module = module};
  make_alike(*module);
  average_gradients(prepared, *module);
  // Where that throws, what there was of it stays, and says in backward what has changed; but of
  // parameters that were cut, which are whole now.
  if (known != models.end())
    *known = std::move(prepared);
  else
    models.push_back(std::move(prepared));
}

/// Gives every rank the values of rank 0, and what is trained its type; and its place, unless it is
/// to be cut.
void Context::make_alike(torch::nn::Module& module) {
  const auto model = layout_of(module);
  auto& comm = communicator();
  check_models_agree(comm, model, impl_->options.data_parallel, device());
  broadcast_tensors(comm, model.parameters, device(), 0);
  broadcast_tensors(comm, model.buffers, device(), 0);
  if (impl_->masters) impl_->masters->narrow(module);
  if (!cuts_values()) module.to(device());
}

void Context::average_gradients(PreparedModel& prepared, const torch::nn::Module& module) {
  if (world_size() == 1) return;
  auto model = layout_of(module);
  const auto& options = impl_->options;
  const bool cuts = options.zero.stage >= 2;
  if (cuts) refuse_shared(model.trained, cut_models(&prepared));
  if (!impl_->queue && !model.trained.empty())
    impl_->queue = std::make_shared<ReductionQueue>(impl_->communicators.control());
  // Before there are hooks, which are lost where a parameter comes to another device.
  if (cuts) cut(prepared, model.trained);
  prepared.watch = std::make_unique<ParameterWatch>(std::move(model.parameters));
  if (model.trained.empty()) return;
  auto keeps = cuts ? Reducer::Keeps::Part : Reducer::Keeps::All;
  if (cuts && options.zero.offload_optimizer) keeps = Reducer::Keeps::PartInMainMemory;
  prepared.reducer = Reducer::make(impl_->queue, communicator(), std::move(model.trained),
                                   options.data_parallel, keeps);
  prepared.reducer->set_synchronized(impl_->unsynchronized == 0);
  auto shards = prepared.reducer->shards();
  for (std::size_t i = 0; i < shards.size(); ++i) prepared.cut[i].averages = std::move(shards[i]);
}

/// Whether a rank holds one part of the parameters alone.
bool Context::cuts_values() const { return impl_->options.zero.stage == 3 && world_size() > 1; }

void Context::cut(PreparedModel& prepared, const std::vector<NamedTensor>& trained) {
  if (trained.empty()) return;
  for (const auto& each : trained) data_type_of(each.tensor);  // refused before any is cut
  auto holds = Flat::Holds::Whole;
  if (cuts_values()) {
    holds =
        impl_->options.zero.offload_parameters ? Flat::Holds::PartInMainMemory : Flat::Holds::Part;
    make_gathering();
  }
  for (auto& bucket : in_buckets(trained, impl_->options.data_parallel)) {
    auto values = std::make_shared<Flat>(std::move(bucket), rank(), world_size(), holds, device());
    prepared.cut.push_back({.values = values, .averages = nullptr});
    if (cuts_values()) impl_->gathering->add({values});  // which gives its buffer back
  }
}

void Context::make_gathering() {
  if (impl_->gathering) return;
  auto& through = impl_->for_parameters;
  through = make_communicators(impl_->member.gang(), impl_->options, device(), kForParameters);
  impl_->gathering = std::make_shared<Gathering>(*through.device, through.control());
  impl_->queue->set_at_end([weak = std::weak_ptr(impl_->gathering)] {
    if (const auto gathering = weak.lock()) gathering->meet();
  });
}

/// Of all models, but of `other`.
std::vector<CutModel> Context::cut_models(const PreparedModel* other) const {
  std::vector<CutModel> found;
  for (const auto& model : impl_->models) {
    if (other == nullptr || model.module.lock() != other->module.lock()) found.push_back(model.cut);
  }
  return found;
}

detail::Preparation Context::prepare_optimizer(torch::optim::Optimizer& optimizer) {
  meet();
  const bool has_parts = train::has_parts(impl_->options);
  const auto* kind = OptimizerKind::of(optimizer);
  if (has_parts && kind == nullptr) {
    const auto name = OptimizerKind::name_of(optimizer);
    throw std::invalid_argument(
        impl_->options.zero.stage > 0
            ? fmt::format("ZeRO cannot cut the state of a {}: ContextOptions::zero is for {}; use "
                          "one of those, or stage 0",
                          name, OptimizerKind::known())
            : fmt::format("a {} has no master weights: mixed_precision.master_weights is for {}; "
                          "use one of those, or train without",
                          name, OptimizerKind::known()));
  }
  if (impl_->scaler && dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw std::invalid_argument(
        "an LBFGS computes the loss several times in each step, and MixedPrecision::Type::Float16 "
        "looks at the gradients of one: use BFloat16, or another optimizer");
  }
  const auto number = static_cast<std::size_t>(impl_->optimizers++);
  if (impl_->restoring) restore_options(optimizer, number);
  auto shards = has_parts ? cut_optimizer(*kind, optimizer) : nullptr;
  if (impl_->restoring) impl_->restoring->load_state(optimizer, shards.get(), number);
  if (!impl_->scaler) return {.shards = std::move(shards)};
  communicator();
  auto scaling =
      std::make_shared<OptimizerScaling>(impl_->scaler, shards, impl_->communicators.control());
  impl_->scalings.push_back(scaling);
  return {.shards = std::move(shards), .scaling = std::move(scaling)};
}

/// nullptr: one rank has it all, and updates the parameters themselves.
std::shared_ptr<OptimizerParts> Context::cut_optimizer(const OptimizerKind& kind,
                                                       torch::optim::Optimizer& optimizer) {
  auto groups = named_groups(optimizer, parameter_names(), device());
  const int stage = impl_->options.zero.stage;
  const bool is_cut = stage > 0 && world_size() > 1;
  const Flat::Masters masters{
      .in_float32 = impl_->masters != nullptr,
      .in_main_memory = impl_->options.zero.offload_optimizer && !device().is_cpu()};
  if (!is_cut && !masters.in_float32 && !masters.in_main_memory) return nullptr;
  auto& comm = communicator();
  check_optimizers_agree(comm, kind.name(), groups, device());
  auto& control = impl_->communicators.control();
  auto parts =
      is_cut && stage >= 2
          ? std::make_shared<OptimizerParts>(kind, std::move(groups), cut_models(nullptr), comm,
                                             control, impl_->gathering)
          : std::make_shared<OptimizerParts>(kind, std::move(groups), comm, control, is_cut);
  if (masters.in_float32 || masters.in_main_memory)
    parts->keep_masters(masters, impl_->masters.get());
  if (impl_->masters) impl_->have_masters.push_back(parts);
  return parts;
}

std::vector<std::shared_ptr<torch::nn::Module>> Context::living_models() const {
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  for (const auto& model : impl_->models) {
    if (auto module = model.module.lock()) models.push_back(std::move(module));
  }
  return models;
}

/// The optimizers with master weights that live on all ranks. A collective.
std::vector<std::shared_ptr<OptimizerParts>> Context::with_masters() const {
  std::vector<std::shared_ptr<OptimizerParts>> parts;
  for (const auto& each : impl_->have_masters) parts.push_back(each.lock());
  if (parts.empty()) return parts;  // and the communicators may not be made
  std::vector<std::int64_t> live(parts.size());
  std::ranges::transform(parts, live.begin(), [](const auto& each) { return each ? 1 : 0; });
  if (world_size() > 1) impl_->communicators.control().all_reduce(std::span(live), ReduceOp::Min);
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i] == 0) parts[i] = nullptr;
  }
  std::erase(parts, nullptr);
  return parts;
}

at::Tensor Context::scaled(const at::Tensor& loss) {
  if (!impl_->scaler) return loss;
  const auto& scalings = impl_->scalings;
  if (std::ranges::all_of(scalings, [](const auto& each) { return each.expired(); })) {
    throw std::logic_error(
        "a loss is scaled, and there is no prepared optimizer that would divide its gradients: "
        "write `auto optimizer = ctx.prepare(...)` before the first loss, with `auto`");
  }
  return loss * impl_->scaler->scaled();
}

double Context::loss_scale() const { return impl_->scaler ? impl_->scaler->scale() : 1; }
std::int64_t Context::skipped_steps() const { return impl_->scaler ? impl_->scaler->skipped() : 0; }

double Context::clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm) {
  meet();
  if (impl_->scaler) scaling_of(optimizer).unscale(optimizer);
  auto* parts = parts_of(optimizer, impl_->options);
  if (parts != nullptr && parts->has_gradients()) return parts->clip_gradients(max_norm);
  if (impl_->masters) {
    const auto gradients = gradients_of(optimizer);
    return clip(gradients, std::sqrt(sum_of_squares(gradients)), max_norm);
  }
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  return torch::nn::utils::clip_grad_norm_(parameters, max_norm);
}

void Context::restore_options(torch::optim::Optimizer& optimizer, std::size_t number) {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> own;
  for (const auto& group : optimizer.param_groups()) own.push_back(group.options().clone());
  impl_->restoring->load_options(optimizer, number, parameter_names(), device());
  if (!impl_->member.reconfigured()) return;
  // The checkpoint has the options of who wrote it. The function has just made the optimizer with
  // those of its configuration.
  for (std::size_t group = 0; group < own.size(); ++group)
    optimizer.param_groups()[group].set_options(std::move(own[group]));
}

/// Before ranks wait for each other elsewhere: one may still need parameters of which others have
/// parts.
void Context::meet() {
  if (impl_->gathering) impl_->gathering->meet();
}

Context::Gathered Context::gather(const torch::nn::Module& module) {
  if (!impl_->gathering) return Gathered(nullptr);
  auto held = cut_values(module.parameters());
  impl_->gathering->hold(held);
  return Gathered(std::shared_ptr<void>(nullptr, [held](void*) { Gathering::release_held(held); }));
}

/// The buckets of values that have some of these parameters.
std::vector<std::shared_ptr<Flat>> Context::cut_values(
    const std::vector<at::Tensor>& parameters) const {
  std::unordered_set<const void*> wanted;
  for (const auto& parameter : parameters) wanted.insert(parameter.unsafeGetTensorImpl());
  std::vector<std::shared_ptr<Flat>> found;
  for (const auto& model : impl_->models) {
    for (const auto& bucket : model.cut) {
      if (std::ranges::any_of(bucket.values->parameters(), [&](const auto& parameter) {
            return wanted.contains(parameter.tensor.unsafeGetTensorImpl());
          }))
        found.push_back(bucket.values);
    }
  }
  return found;
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
  if (!checkpoint.directory.empty()) impl_->kept->check(metrics);
  meet();
  const auto verdict = impl_->member.report(metrics, checkpoint.directory);
  impl_->stopped = impl_->stopped || verdict == Verdict::Stop;
  if (checkpoint.directory.empty()) return verdict;
  for (const auto& old : impl_->kept->add(checkpoint.directory, metrics)) remove_checkpoint(old);
  return verdict;
}

/// Of the parameters of all prepared models that live.
std::unordered_map<const void*, std::string> Context::parameter_names() const {
  std::unordered_map<const void*, std::string> names;
  for (const auto& model : living_models()) {
    for (const auto& [name, tensor] : layout_of(*model).parameters)
      names.emplace(tensor.unsafeGetTensorImpl(), name);
  }
  return names;
}

CheckpointSave Context::save(const std::vector<std::shared_ptr<torch::nn::Module>>& models,
                             const std::vector<const torch::optim::Optimizer*>& optimizers,
                             bool copies) {
  if (impl_->scaler) {
    for (const auto* optimizer : optimizers) scaling_of(*optimizer);  // throws
  }
  std::vector<OptimizerParts*> parts;
  for (const auto* optimizer : optimizers) parts.push_back(parts_of(*optimizer, impl_->options));
  const auto& storage = impl_->member.storage();
  if (storage.empty()) return CheckpointSave(nullptr);
  meet();
  RankPart own(rank(), copies);
  for (const auto* each : parts) {
    if (each != nullptr) own.add_cut(each->flats());
  }
  for (const auto& model : impl_->models) own.add_cut(values_of(model.cut));
  if (impl_->masters) {
    for (const auto& each : with_masters()) own.add_cut(each->flats());
    own.write_float32(*impl_->masters);
  }
  own.manifest().epoch = impl_->epoch;
  own.manifest().ranks = world_size();
  own.manifest().zero_stage = impl_->options.zero.stage;
  if (impl_->scaler) own.manifest().loss_scale = impl_->scaler->state();
  for (const auto& model : models) own.add_model(*model);
  const auto names = parameter_names();
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    own.add_optimizer(*optimizers[i], parts[i], names);
  return CheckpointSave(
      saver().begin({.manifest = std::move(own.manifest()), .files = std::move(own.files())}));
}

Saver& Context::saver() {
  auto& made = impl_->saver;
  if (made) return *made;
  const auto& options = impl_->options;
  std::unique_ptr<Communicator> between;
  if (world_size() > 1) {
    // Ranks wait for each other's disks, which is no hang.
    between = make_host_communicator(
        impl_->member.gang(),
        {.name = kForCheckpoints, .timeout = options.timeout, .warn_after = {}});
  }
  made = std::make_unique<Saver>(impl_->member.storage(), std::move(between), options.timeout);
  return *made;
}

}  // namespace troupe::train
