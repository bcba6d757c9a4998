#include "prepared/models.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/module.h>

#include "log/log.hpp"
#include "parallel/agreement.hpp"
#include "parallel/tensor_type.hpp"
#include "plan/full_memory.hpp"
#include "zero/moving.hpp"
#include "zero/preparing.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kMostWaiting = 2;  // buckets of gradients that are to be cut

std::vector<std::shared_ptr<Flat>> values_of(const CutModel& cut) {
  std::vector<std::shared_ptr<Flat>> values;
  for (const auto& bucket : cut) values.push_back(bucket.values);
  return values;
}

}  // namespace

PreparedModels::PreparedModels(const ContextRank& here, CommunicatorsOnDemand& communicators,
                               CommunicatorsOnDemand& for_parameters,
                               CommunicatorsOnDemand& for_statistics, Restoring* restoring,
                               std::unique_ptr<InitialMasters> masters)
    : here_(here),
      communicators_(communicators),
      for_parameters_(for_parameters),
      for_statistics_(for_statistics),
      restoring_(restoring),
      masters_(std::move(masters)) {}

PreparedModels::~PreparedModels() {
  if (gathering_) gathering_->end();
}

void PreparedModels::prepare(std::shared_ptr<torch::nn::Module> module) {
  if (!module) throw std::invalid_argument("prepare: the model is empty");
  if (queue_) queue_->refuse_while_open();
  meet();
  const auto known =
      std::ranges::find_if(models_, [&](auto& each) { return each.module.lock() == module; });
  if (known != models_.end() && gathering_)
    gathering_->dissolve(values_of(std::exchange(known->cut, {})));
  if (known == models_.end()) add_size(size_, *module);  // of which memory may run out from here on
  warn_of_one_rank();
  if (masters_ || cuts_values())
    move_all_but_trained(*module, here_.device);
  else
    module->to(here_.device);
  if (known == models_.end() && masters_) masters_->widen(*module, living());
  if (known == models_.end() && restoring_ != nullptr)
    restoring_->load_model(*module, models_.size());
  Prepared prepared{.module = module};
  make_alike(*module);
  connect_statistics(*module);
  average_gradients(prepared, module);
  prepared.names = names_of(*module);
  if (known != models_.end())
    *known = std::move(prepared);
  else
    models_.push_back(std::move(prepared));
}

/// Whether a rank holds one part of the parameters alone.
bool PreparedModels::cuts_values() const {
  return here_.options.zero.stage == 3 && here_.world_size() > 1;
}

void PreparedModels::warn_of_one_rank() {
  const auto& zero = here_.options.zero;
  if (!zero.offload_parameters || here_.world_size() > 1 || here_.device.is_cpu()) return;
  if (std::exchange(has_warned_, true)) return;
  log::warn(
      fmt::format("one rank trains alone, and so has all parameters and gradients on {}: "
                  "zero.offload_parameters has no effect, and the optimizer is in main memory",
                  here_.device.str()));
}

/// Gives every rank the values of rank 0. Gives trained parameters the type in which they are
/// trained, and the device unless they are to be cut.
void PreparedModels::make_alike(torch::nn::Module& module) {
  const auto model = layout_of(module);
  auto& comm = communicators_.device();
  check_models_agree(comm, model, here_.options, here_.device);
  broadcast_tensors(comm, model.parameters, here_.device, 0);
  ModelBuffers(model.buffers, here_.device).broadcast(comm, 0);
  if (masters_) masters_->narrow(module);
  if (!cuts_values()) module.to(here_.device);
}

/// The communicators of the statistics are made where all ranks have models that are alike.
void PreparedModels::connect_statistics(torch::nn::Module& module) {
  if (!has_sync_batch_norm(module)) return;
  if (!statistics_ && here_.world_size() > 1) {
    statistics_ = std::make_shared<BatchStatistics>(for_statistics_.device(), here_.device, share_);
    for (auto& model : models_) {
      if (model.reducer) model.reducer->set_most_waiting(std::nullopt);
    }
  }
  share_statistics(module, statistics_);
}

void PreparedModels::average_gradients(Prepared& prepared,
                                       const std::shared_ptr<torch::nn::Module>& module) {
  if (here_.world_size() == 1) return;
  auto model = layout_of(*module);
  const auto& options = here_.options;
  const bool cuts = options.zero.stage >= 2;
  if (cuts) refuse_shared(model.trained, cut_models_but(*module));
  if (!queue_ && !model.trained.empty())
    queue_ = std::make_shared<ReductionQueue>(communicators_.control());
  connect_ends();
  // A hook is lost where its parameter comes to another device.
  if (cuts) cut(prepared, model.trained);
  prepared.watch = std::make_shared<ParameterWatch>(module);
  if (model.trained.empty()) return;
  auto keeps = cuts ? Reducer::Keeps::Part : Reducer::Keeps::All;
  if (cuts && options.zero.offload_optimizer) keeps = Reducer::Keeps::PartInMainMemory;
  Reducer::Settings settings{
      .options = options.data_parallel, .keeps = keeps, .share = share_, .watch = prepared.watch};
  if (options.data_parallel.broadcast_buffers)
    settings.buffers.emplace(model.buffers, here_.device);
  prepared.reducer =
      Reducer::make(queue_, communicators_.device(), std::move(model.trained), std::move(settings));
  prepared.reducer->set_synchronized(unsynchronized_ == 0);
  // A rank that waits must not be waited for in backward, as with stage 3 and SyncBatchNorm, also
  // of another model, and where a bucket may be full at its end alone.
  if (cuts && !cuts_values() && !statistics_ && !options.data_parallel.find_unused_parameters)
    prepared.reducer->set_most_waiting(kMostWaiting);
  auto shards = prepared.reducer->shards();
  TORCH_INTERNAL_ASSERT(shards.size() == prepared.cut.size(), "values and gradients are cut alike");
  for (std::size_t i = 0; i < shards.size(); ++i) prepared.cut[i].averages = std::move(shards[i]);
}

void PreparedModels::cut(Prepared& prepared, const std::vector<NamedTensor>& trained) {
  if (trained.empty()) return;
  for (const auto& each : trained) data_type_of(each.tensor);  // refused before any is cut
  auto holds = Flat::Holds::Whole;
  if (cuts_values()) {
    holds =
        here_.options.zero.offload_parameters ? Flat::Holds::PartInMainMemory : Flat::Holds::Part;
    make_gathering();
  }
  for (auto& bucket : in_buckets(trained, here_.options.data_parallel)) {
    auto values = std::make_shared<Flat>(std::move(bucket), here_.rank(), here_.world_size(), holds,
                                         here_.device);
    prepared.cut.push_back({.values = values, .averages = nullptr});
    if (cuts_values()) gathering_->add({values});  // which gives its buffer back
  }
}

void PreparedModels::make_gathering() {
  if (gathering_) return;
  auto& device = for_parameters_.device();
  gathering_ =
      std::make_shared<Gathering>(device, for_parameters_.control(), here_.options.zero.prefetch);
  connect_ends();
}

/// Other ranks may wait in their backwards for what this one does not come to, or need parameters
/// of which it has a part.
void PreparedModels::connect_ends() {
  if (!queue_) return;
  queue_->set_at_end([of_statistics = std::weak_ptr(statistics_),
                      of_gathering = std::weak_ptr(gathering_)](ReductionQueue::End end) {
    const auto statistics = of_statistics.lock();
    if (statistics && end == ReductionQueue::End::ByException)
      statistics->abort("an exception has left backward() on this rank");
    if (const auto gathering = of_gathering.lock()) gathering->meet();
  });
}

void PreparedModels::meet() {
  if (gathering_) gathering_->meet();
}

std::shared_ptr<void> PreparedModels::hold(const torch::nn::Module& module) {
  if (!gathering_) return nullptr;
  auto held = values_with(module.parameters());
  gathering_->hold(held);
  return std::shared_ptr<void>(nullptr, [held](void*) { Gathering::release_held(held); });
}

void PreparedModels::count_unsynchronized(int guards) {
  unsynchronized_ += guards;
  for (auto& model : models_) {
    if (model.reducer) model.reducer->set_synchronized(unsynchronized_ == 0);
  }
}

std::vector<std::shared_ptr<torch::nn::Module>> PreparedModels::living() const {
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  for (const auto& model : models_) {
    if (auto module = model.module.lock()) models.push_back(std::move(module));
  }
  return models;
}

std::vector<PreparedModels::KnownName> PreparedModels::names_of(const torch::nn::Module& module) {
  std::vector<KnownName> names;
  for (auto& [name, tensor] : layout_of(module).parameters)
    names.push_back({KnownParameter(tensor.getIntrusivePtr()), name});
  return names;
}

ParameterNames PreparedModels::parameter_names() const {
  ParameterNames names;
  for (const auto& model : models_) {
    const auto module = model.module.lock();
    for (const auto& [parameter, name] : module ? names_of(*module) : model.names) {
      if (const auto lives = parameter.lock()) names.emplace(lives.get(), name);
    }
  }
  return names;
}

std::vector<CutModel> PreparedModels::cut_models() const {
  std::vector<CutModel> found;
  for (const auto& model : models_) found.push_back(model.cut);
  return found;
}

std::vector<CutModel> PreparedModels::cut_models_but(const torch::nn::Module& module) const {
  std::vector<CutModel> found;
  for (const auto& model : models_) {
    if (model.module.lock().get() != &module) found.push_back(model.cut);
  }
  return found;
}

std::vector<std::shared_ptr<Flat>> PreparedModels::cut_values() const {
  std::vector<std::shared_ptr<Flat>> found;
  for (const auto& model : models_) {
    for (const auto& bucket : model.cut) found.push_back(bucket.values);
  }
  return found;
}

/// The buckets that have some of these parameters.
std::vector<std::shared_ptr<Flat>> PreparedModels::values_with(
    const std::vector<at::Tensor>& parameters) const {
  std::unordered_set<const void*> wanted;
  for (const auto& parameter : parameters) wanted.insert(parameter.unsafeGetTensorImpl());
  auto found = cut_values();
  std::erase_if(found, [&](const auto& values) {
    return std::ranges::none_of(values->parameters(), [&](const auto& parameter) {
      return wanted.contains(parameter.tensor.unsafeGetTensorImpl());
    });
  });
  return found;
}

}  // namespace troupe::train
