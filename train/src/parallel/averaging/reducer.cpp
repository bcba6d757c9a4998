#include "parallel/averaging/reducer.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "parallel/tensor_type.hpp"

namespace troupe::train {
namespace {

/// One backward of a queue's models. Autograd drops it when its own work is over: without a call
/// before, an exception has left the backward.
class EndOfBackward {
 public:
  explicit EndOfBackward(std::weak_ptr<ReductionQueue> queue) : queue_(std::move(queue)) {}
  ~EndOfBackward() {
    if (auto queue = queue_.lock()) queue->abandon();
  }
  EndOfBackward(const EndOfBackward&) = delete;
  EndOfBackward& operator=(const EndOfBackward&) = delete;

  void come() {
    if (auto queue = std::exchange(queue_, {}).lock()) queue->close();
  }

 private:
  std::weak_ptr<ReductionQueue> queue_;
};

}  // namespace

/// Runs after a parameter's gradient was accumulated.
class Reducer::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(std::weak_ptr<Reducer> reducer, std::size_t index)
      : reducer_(std::move(reducer)), index_(index) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (auto reducer = reducer_.lock()) reducer->on_gradient(index_);
    return outputs;
  }

 private:
  std::weak_ptr<Reducer> reducer_;
  std::size_t index_;
};

/// Runs before a gradient is accumulated, and, unlike a hook of the tensor, only then.
class Reducer::HookBefore final : public torch::autograd::FunctionPreHook {
 public:
  HookBefore(std::weak_ptr<Reducer> reducer, std::size_t index)
      : reducer_(std::move(reducer)), index_(index) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    auto reducer = reducer_.lock();
    if (reducer && gradients.at(0).defined()) reducer->before_gradient(index_);
    return gradients;
  }

 private:
  std::weak_ptr<Reducer> reducer_;
  std::size_t index_;
};

std::shared_ptr<Reducer> Reducer::make(std::shared_ptr<ReductionQueue> queue,
                                       Communicator& communicator,
                                       std::vector<NamedTensor> parameters,
                                       const DataParallelOptions& options, Keeps keeps,
                                       Trace trace) {
  std::shared_ptr<Reducer> reducer(
      new Reducer(std::move(queue), communicator, options, keeps, std::move(trace)));
  reducer->fill_buckets(std::move(parameters));
  reducer->install_hooks();
  reducer->ordinal_ = reducer->queue_->add(*reducer);
  return reducer;
}

Reducer::Reducer(std::shared_ptr<ReductionQueue> queue, Communicator& communicator,
                 const DataParallelOptions& options, Keeps keeps, Trace trace)
    : queue_(std::move(queue)),
      communicator_(communicator),
      background_(dynamic_cast<BackgroundReductions*>(&communicator)),
      options_(options),
      keeps_(keeps),
      trace_(std::move(trace)) {}

// Also of one that make() has not brought to its end.
Reducer::~Reducer() {
  if (ordinal_) queue_->remove(*ordinal_);
  for (auto& parameter : parameters_) {
    if (!parameter.accumulator) continue;
    parameter.accumulator->del_post_hook(parameter.hook);
    std::erase_if(parameter.accumulator->pre_hooks(),
                  [&](const auto& hook) { return hook.get() == parameter.before; });
  }
}

std::string Reducer::name() const {
  return fmt::format("{}{}", parameters_.back().name, parameters_.size() > 1 ? ", ..." : "");
}

void Reducer::fill_buckets(std::vector<NamedTensor> parameters) {
  for (auto& bucket : in_buckets(std::move(parameters), options_)) {
    auto& members = buckets_.emplace_back().members;
    for (auto& [name, tensor] : bucket) {
      members.push_back(parameters_.size());
      parameters_.push_back({.name = std::move(name),
                             .variable = tensor,
                             .part = {},
                             .bucket = buckets_.size() - 1,
                             .member = members.size() - 1,
                             .accumulator = {}});
    }
  }
  for (auto& bucket : buckets_) {
    if (keeps_ == Keeps::All)
      allocate(bucket);
    else
      make_shard(bucket);
  }
  if (keeps_ != Keeps::All) plan_rooms();
}

/// One for all buckets of a type: they are reduced one after the other.
void Reducer::plan_rooms() {
  for (auto& bucket : buckets_) {
    const auto options =
        parameters_[bucket.members.front()].variable.options().requires_grad(false);
    auto room = std::ranges::find_if(
        rooms_, [&](const Room& each) { return each.options.type_equal(options); });
    if (room == rooms_.end()) room = rooms_.insert(room, {.options = options, .tensor = {}});
    room->elements = std::max(room->elements, bucket.shard->elements());
    bucket.room = static_cast<std::size_t>(room - rooms_.begin());
  }
}

void Reducer::make_shard(Bucket& bucket) {
  std::vector<NamedTensor> parameters;
  for (auto index : bucket.members)
    parameters.push_back({parameters_[index].name, parameters_[index].variable});
  bucket.shard =
      std::make_shared<GradientShard>(std::move(parameters), communicator_.rank(),
                                      communicator_.size(), keeps_ == Keeps::PartInMainMemory);
}

std::vector<std::shared_ptr<GradientShard>> Reducer::shards() const {
  std::vector<std::shared_ptr<GradientShard>> shards;
  for (const auto& bucket : buckets_) {
    if (bucket.shard) shards.push_back(bucket.shard);
  }
  return shards;
}

void Reducer::allocate(Bucket& bucket) {
  std::int64_t elements = 0;
  for (auto index : bucket.members) elements += parameters_[index].variable.numel();
  const auto& first = parameters_[bucket.members.front()].variable;
  const auto options = first.options().requires_grad(false);
  data_type_of(first);  // refuses what cannot be reduced
  if (first.device().is_cpu())
    bucket.memory =
        communicator_.allocate(static_cast<std::size_t>(elements) * first.element_size());
  bucket.flat = bucket.memory ? at::from_blob(
                                    bucket.memory.get(), {elements},
                                    [kept = bucket.memory](void*) {}, options)
                              : at::zeros({elements}, options);
  std::int64_t at = 0;
  for (auto index : bucket.members) {
    auto& parameter = parameters_[index];
    // The same memory, but no view of `flat` to autograd: Optimizer::zero_grad detaches gradients
    // in place, which views refuse.
    auto* memory = static_cast<char*>(bucket.flat.data_ptr()) +
                   static_cast<std::size_t>(at) * first.element_size();
    parameter.part = at::from_blob(
        memory, parameter.variable.sizes(), [kept = bucket.flat](void*) {}, options);
    at += parameter.variable.numel();
  }
}

void Reducer::install_hooks() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    auto accumulator = torch::autograd::impl::grad_accumulator(parameter.variable);
    parameter.hook = accumulator->add_post_hook(std::make_unique<Hook>(weak_from_this(), i));
    parameter.accumulator = std::move(accumulator);
    if (shard_of(parameter) == nullptr) continue;
    auto before = std::make_unique<HookBefore>(weak_from_this(), i);
    parameter.before = before.get();
    parameter.accumulator->add_pre_hook(std::move(before));
  }
}

bool Reducer::has_gradient(const Parameter& parameter) const {
  const auto* shard = shard_of(parameter);
  return shard != nullptr ? shard->has_gradient(parameter.member)
                          : parameter.variable.grad().defined();
}

// The gradients of a model that takes part already are for the thread that reduces them.
bool Reducer::owes_average() const {
  return in_backward_ || std::any_of(parameters_.begin(), parameters_.end(),
                                     [&](auto& each) { return owes(each); });
}

void Reducer::refuse_second(const Parameter& parameter) const {
  if (!synchronized_ || !in_backward_ || !parameter.ready) return;
  throw std::logic_error(
      fmt::format("parameter {} got its gradient twice in one backward (a backward inside of "
                  "it?); run all but the last under no_sync()",
                  parameter.name));
}

// A gradient of a bucket that is full is for the thread that reduces it.
void Reducer::before_gradient(std::size_t index) {
  const auto& parameter = parameters_[index];
  refuse_second(parameter);
  shard_of(parameter)->before_gradient(parameter.member);
}

void Reducer::on_gradient(std::size_t index) {
  auto& parameter = parameters_[index];
  refuse_second(parameter);
  parameter.used = parameter.used || has_gradient(parameter);
  if (synchronized_ && !in_backward_) begin_backward();
  if (auto* shard = shard_of(parameter)) shard->check_stand_in(parameter.member);
  if (!synchronized_) return;
  mark_ready(parameter);
  submit_full_buckets();
  if (most_waiting_) queue_->await_room(*ordinal_, *most_waiting_);
}

void Reducer::expect_all() {
  full_ = 0;
  for (auto& parameter : parameters_) parameter.ready = false;
  for (auto& bucket : buckets_) bucket.waiting = bucket.members.size();
  in_backward_ = true;
}

void Reducer::begin_backward() {
  expect_all();
  if (!queue_->begin(*ordinal_)) return;
  torch::autograd::Engine::get_default_engine().queue_callback(
      [end = std::make_shared<EndOfBackward>(queue_)] { end->come(); });
}

void Reducer::mark_ready(Parameter& parameter) {
  const auto& gradient = parameter.variable.grad();
  if (has_gradient(parameter) && gradient.layout() != at::kStrided) {
    throw std::invalid_argument(fmt::format(
        "the gradient of {} is sparse; only dense gradients are averaged", parameter.name));
  }
  parameter.gives = owes(parameter);
  if (shard_of(parameter) == nullptr) move_into_bucket(parameter);
  parameter.ready = true;
  auto& bucket = buckets_[parameter.bucket];
  if (--bucket.waiting == 0) note_filled(bucket);
}

// A gradient that autograd made itself, which it does whenever there was none, moves into its part
// of the bucket. One that is undefined counts as zero, and gets the average at the end.
void Reducer::move_into_bucket(Parameter& parameter) {
  const at::NoGradGuard no_grad;
  auto& gradient = parameter.variable.mutable_grad();
  if (!gradient.defined()) {
    parameter.part.zero_();
  } else if (gradient.unsafeGetTensorImpl() != parameter.part.unsafeGetTensorImpl()) {
    parameter.part.copy_(gradient);
    gradient = parameter.part;
  }
}

void Reducer::submit_full_buckets() {
  const auto before = full_;
  for (; full_ < buckets_.size() && buckets_[full_].waiting == 0; ++full_) {
    trace(Event::Submitted, full_);
  }
  if (full_ > before) queue_->on_full(*ordinal_, full_);
}

void Reducer::note_filled(Bucket& bucket) {
  const auto device = parameters_[bucket.members.front()].variable.device();
  if (!device.is_cuda()) return;
  if (!bucket.filled) bucket.filled.emplace(device.type());
  bucket.filled->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

void Reducer::fill() {
  if (!in_backward_) expect_all();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    if (!parameter.ready && owes(parameter)) mark_ready(parameter);
    if (parameter.ready) continue;
    unused_.push_back(i);
    if (auto* shard = shard_of(parameter)) shard->check_stand_in(parameter.member);
  }
  if (!unused_.empty() && !options_.find_unused_parameters) refuse_unused();
  add_unused();
  for (auto& bucket : buckets_) {
    if (std::exchange(bucket.waiting, 0) > 0) note_filled(bucket);
  }
  submit_full_buckets();
}

void Reducer::fill_with_zeros() {
  if (!options_.find_unused_parameters) return;  // an error on all ranks, once they are through
  unused_.resize(parameters_.size());
  std::iota(unused_.begin(), unused_.end(), 0);
  add_unused();
  for (auto& bucket : buckets_) note_filled(bucket);
}

void Reducer::add_unused() {
  if (keeps_ != Keeps::All) return;  // a shard knows what has come
  const at::NoGradGuard no_grad;
  for (auto index : unused_) {
    auto& parameter = parameters_[index];
    const auto& had = parameter.variable.grad();
    if (!had.defined())
      parameter.part.zero_();
    else if (had.unsafeGetTensorImpl() != parameter.part.unsafeGetTensorImpl())
      parameter.part.copy_(had);
    else
      kept_.emplace_back(index, had.clone());
  }
}

void Reducer::refuse_unused() const {
  constexpr std::size_t kNamed = 10;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kNamed, unused_.size()); ++i)
    names.push_back(parameters_[unused_[i]].name);
  if (unused_.size() > kNamed) names.push_back(fmt::format("and {} more", unused_.size() - kNamed));
  throw std::logic_error(
      fmt::format("{} of {} parameters got no gradient in this backward: {}. The loss must depend "
                  "on all of them, or set DataParallelOptions::find_unused_parameters",
                  unused_.size(), parameters_.size(), fmt::join(names, ", ")));
}

// What somebody used has an average now, on every rank. The rest keeps the gradient that it had, if
// parameters may be unused.
void Reducer::finish(Communicator& control) {
  std::vector<std::int32_t> used(parameters_.size(), 1);
  if (options_.find_unused_parameters) used = used_anywhere(control);
  const at::NoGradGuard no_grad;
  for (const auto& [index, gradient] : kept_) {
    if (used[index] == 0) parameters_[index].part.copy_(gradient);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    if (auto* shard = shard_of(parameter))
      shard->finish(parameter.member, used[i] != 0);
    else if (used[i] != 0)
      parameter.variable.mutable_grad() = parameter.part;
  }
  trace(Event::BackwardEnded, buckets_.size());
}

std::vector<std::int32_t> Reducer::used_anywhere(Communicator& control) const {
  std::vector<std::int32_t> used(parameters_.size());
  std::transform(parameters_.begin(), parameters_.end(), used.begin(),
                 [](auto& parameter) { return parameter.gives ? 1 : 0; });
  control.all_reduce(std::span(used), ReduceOp::Max);
  return used;
}

void Reducer::reset() {
  in_backward_ = false;
  unused_.clear();
  kept_.clear();
  for (auto& room : rooms_) room.tensor.reset();
  for (auto& parameter : parameters_) parameter.ready = parameter.gives = parameter.used = false;
}

void Reducer::reduce(std::size_t index) {
  auto& bucket = buckets_[index];
  if (bucket.shard)
    reduce_shard(bucket);
  else
    reduce_buffer(bucket);
  trace(Event::Reduced, index);
}

void Reducer::reduce_buffer(Bucket& bucket) {
  const auto& flat = bucket.flat;
  const auto count = static_cast<std::size_t>(flat.numel());
  if (background_ && bucket.filled) {
    background_->begin_average(flat.data_ptr(), count, data_type_of(flat),
                               bucket.filled->eventId());
  } else {
    communicator_.all_reduce(flat.data_ptr(), count, data_type_of(flat), ReduceOp::Average);
  }
}

void Reducer::reduce_shard(Bucket& bucket) {
  std::vector<bool> has_come;
  for (auto index : bucket.members) has_come.push_back(parameters_[index].ready);
  try {
    auto& room = rooms_[bucket.room];
    if (!room.tensor.defined()) room.tensor = at::empty({room.elements}, room.options);
    if (bucket.filled) {
      const auto device = room.tensor.device();
      bucket.filled->block(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    }
    bucket.shard->reduce(communicator_, has_come, room.tensor);
  } catch (const std::exception& failed) {
    // It may have been thrown before the collective, for which the others wait.
    communicator_.abort(failed.what());
    throw;
  }
}

void Reducer::give_up_reductions() noexcept {
  if (background_) background_->give_up("a collective beside its averages failed");
}

void Reducer::complete_reductions() {
  if (background_) background_->complete();
}

}  // namespace troupe::train
