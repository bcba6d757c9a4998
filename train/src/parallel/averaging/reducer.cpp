#include "parallel/averaging/reducer.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "parallel/tensor_type.hpp"
#include "parallel/torch_error.hpp"

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

/// Runs before a gradient is accumulated, and, unlike a hook of the tensor, only then. The gradient
/// of a batch that does not count is undefined, which counts as zero; under no_sync() it is zero,
/// so that the parameter owes an average as on the ranks whose batch counts.
class Reducer::HookBefore final : public torch::autograd::FunctionPreHook {
 public:
  HookBefore(std::weak_ptr<Reducer> reducer, std::size_t index)
      : reducer_(std::move(reducer)), index_(index) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    auto reducer = reducer_.lock();
    if (!reducer) return gradients;
    const bool counts = reducer->settings_.share->counts;
    if (!counts && reducer->synchronized_) return torch::autograd::variable_list(gradients.size());
    if (!gradients.at(0).defined()) return gradients;
    reducer->before_gradient(index_);
    if (counts) return gradients;
    return {at::zeros_like(gradients.at(0))};
  }

 private:
  std::weak_ptr<Reducer> reducer_;
  std::size_t index_;
};

std::shared_ptr<Reducer> Reducer::make(std::shared_ptr<ReductionQueue> queue,
                                       Communicator& communicator,
                                       std::vector<NamedTensor> parameters, Settings settings) {
  std::shared_ptr<Reducer> reducer(
      new Reducer(std::move(queue), communicator, std::move(parameters), std::move(settings)));
  std::vector<std::int64_t> order(reducer->parameters_.size());
  std::iota(order.rbegin(), order.rend(), 0);
  reducer->make_buckets(order);
  reducer->install_hooks();
  reducer->ordinal_ = reducer->queue_->add(*reducer);
  return reducer;
}

Reducer::Reducer(std::shared_ptr<ReductionQueue> queue, Communicator& communicator,
                 std::vector<NamedTensor> parameters, Settings settings)
    : queue_(std::move(queue)),
      communicator_(communicator),
      background_(dynamic_cast<BackgroundReductions*>(&communicator)),
      settings_(std::move(settings)),
      order_(parameters.size()) {
  for (auto& [name, tensor] : parameters)
    parameters_.push_back(
        {.name = std::move(name), .variable = std::move(tensor), .accumulator = {}});
}

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
  return fmt::format("{}{}", parameters_.front().name, parameters_.size() > 1 ? ", ..." : "");
}

std::vector<std::vector<std::size_t>> Reducer::members_in(
    const std::vector<std::int64_t>& order) const {
  std::vector<at::Tensor> variables;
  for (const auto& parameter : parameters_) variables.push_back(parameter.variable);
  return members_of_buckets(order, variables, settings_.options);
}

void Reducer::make_buckets(const std::vector<std::int64_t>& order) {
  std::vector<Bucket> buckets;
  for (auto& members : members_in(order)) {
    auto& bucket = buckets.emplace_back();
    bucket.members = std::move(members);
    auto parameters = parameters_of(bucket);
    if (settings_.keeps == Keeps::All)
      bucket.buffer = std::make_unique<GradientBuffer>(parameters, communicator_,
                                                       settings_.options.compression);
    else
      bucket.shard = std::make_shared<GradientShard>(std::move(parameters), communicator_.rank(),
                                                     communicator_.size(),
                                                     settings_.keeps == Keeps::PartInMainMemory);
  }
  buckets_ = std::move(buckets);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (std::size_t member = 0; member < buckets_[bucket].members.size(); ++member) {
      auto& parameter = parameters_[buckets_[bucket].members[member]];
      parameter.bucket = bucket;
      parameter.member = member;
    }
  }
  plan_rooms();
}

std::vector<NamedTensor> Reducer::parameters_of(const Bucket& bucket) const {
  std::vector<NamedTensor> parameters;
  for (auto index : bucket.members)
    parameters.push_back({parameters_[index].name, parameters_[index].variable});
  return parameters;
}

/// One for all buckets of a type: they are reduced one after the other.
void Reducer::plan_rooms() {
  rooms_.clear();
  for (auto& bucket : buckets_) {
    const auto& first = parameters_[bucket.members.front()].variable;
    const auto type = averaged_type(first.scalar_type(), settings_.options.compression);
    const auto options = first.options().requires_grad(false).dtype(type);
    auto room = std::ranges::find_if(
        rooms_, [&](const Room& each) { return each.options.type_equal(options); });
    if (room == rooms_.end()) room = rooms_.insert(room, {.options = options, .tensor = {}});
    room->elements = std::max(room->elements,
                              bucket.shard ? bucket.shard->elements() : bucket.buffer->elements());
    bucket.room = static_cast<std::size_t>(room - rooms_.begin());
  }
}

at::Tensor& Reducer::room_of(const Bucket& bucket) {
  auto& room = rooms_[bucket.room];
  if (!room.tensor.defined()) room.tensor = at::empty({room.elements}, room.options);
  return room.tensor;
}

/// After a backward whose gradients came in another order than the buckets are in. A collective.
void Reducer::follow_order(Communicator& control) {
  if (follows_order_ || settings_.keeps != Keeps::All || settings_.options.find_unused_parameters)
    return;
  follows_order_ = true;
  const auto order = order_.agree(control);
  const auto same_members = [](std::vector<std::size_t> wanted, const Bucket& bucket) {
    auto members = bucket.members;
    std::ranges::sort(wanted);
    std::ranges::sort(members);
    return wanted == members;
  };
  if (std::ranges::equal(members_in(order), buckets_, same_members)) return;
  make_buckets(order);
  // So that the memory of the buckets before is given back.
  for (auto& parameter : parameters_) {
    auto& gradient = parameter.variable.mutable_grad();
    if (gradient.defined()) buckets_[parameter.bucket].buffer->move_in(parameter.member, gradient);
  }
}

/// What else ranks have alike after a backward, but for the gradients. A collective.
void Reducer::make_alike(Communicator& control) {
  try {
    follow_order(control);
    if (settings_.buffers) settings_.buffers->broadcast(communicator_, settings_.share->first);
  } catch (const std::exception& failed) {
    // It may have been thrown beside a collective, for which the others wait.
    communicator_.abort(text_of(failed));
    throw;
  }
}

std::vector<std::shared_ptr<GradientShard>> Reducer::shards() const {
  std::vector<std::shared_ptr<GradientShard>> shards;
  for (const auto& bucket : buckets_) {
    if (bucket.shard) shards.push_back(bucket.shard);
  }
  return shards;
}

void Reducer::install_hooks() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    auto accumulator = torch::autograd::impl::grad_accumulator(parameter.variable);
    parameter.hook = accumulator->add_post_hook(std::make_unique<Hook>(weak_from_this(), i));
    parameter.accumulator = std::move(accumulator);
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
  if (auto* shard = shard_of(parameter)) shard->before_gradient(parameter.member);
}

void Reducer::on_gradient(std::size_t index) {
  auto& parameter = parameters_[index];
  refuse_second(parameter);
  parameter.used = parameter.used || has_gradient(parameter);
  if (synchronized_ && !in_backward_) begin_backward();
  if (auto* shard = shard_of(parameter)) shard->check_stand_in(parameter.member);
  if (!synchronized_) return;
  if (!follows_order_) order_.note(index);
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
  auto& bucket = buckets_[parameter.bucket];
  if (bucket.buffer) bucket.buffer->move_in(parameter.member, parameter.variable.mutable_grad());
  parameter.ready = true;
  if (--bucket.waiting == 0) note_filled(bucket);
}

void Reducer::submit_full_buckets() {
  const auto before = full_;
  for (; full_ < buckets_.size() && buckets_[full_].waiting == 0; ++full_) {
    trace(Event::Submitted, full_);
  }
  if (full_ > before) queue_->on_full(*ordinal_, full_);
}

void Reducer::note_filled(Bucket& bucket) {
  if (background_ == nullptr) return;
  const auto device = parameters_[bucket.members.front()].variable.device();
  if (bucket.buffer) bucket.buffer->compress();
  if (!bucket.filled) bucket.filled.emplace(device.type());
  bucket.filled->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

void Reducer::fill() {
  if (settings_.watch) settings_.watch->refuse_added(averages);
  if (!in_backward_) expect_all();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    if (!parameter.ready && owes(parameter)) mark_ready(parameter);
    if (parameter.ready) continue;
    unused_.push_back(i);
    if (auto* shard = shard_of(parameter)) shard->check_stand_in(parameter.member);
  }
  if (!unused_.empty() && !settings_.options.find_unused_parameters)
    refuse_unused(names_of(unused_), parameters_.size());
  add_unused();
  for (auto& bucket : buckets_) {
    if (std::exchange(bucket.waiting, 0) > 0) note_filled(bucket);
  }
  submit_full_buckets();
}

void Reducer::fill_with_zeros() {
  if (!settings_.options.find_unused_parameters)
    return;  // an error on all ranks, once they are through
  unused_.resize(parameters_.size());
  std::iota(unused_.begin(), unused_.end(), 0);
  or_abort([&] {
    add_unused();
    for (auto& bucket : buckets_) note_filled(bucket);
  });
}

void Reducer::add_unused() {
  if (settings_.keeps != Keeps::All) return;  // a shard knows what has come
  const at::NoGradGuard no_grad;
  for (auto index : unused_) {
    auto& parameter = parameters_[index];
    const auto& part = part_of(parameter);
    const auto& had = parameter.variable.grad();
    if (!had.defined())
      part.zero_();
    else if (!buckets_[parameter.bucket].buffer->holds(parameter.member, had))
      part.copy_(had);
    else
      kept_.emplace_back(index, had.clone());
  }
}

bool Reducer::averages(const at::Tensor& parameter) {
  const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(parameter);
  return accumulator && std::ranges::any_of(accumulator->post_hooks(), [](const auto& hook) {
           return dynamic_cast<Hook*>(hook.get()) != nullptr;
         });
}

std::vector<std::string> Reducer::names_of(const std::vector<std::size_t>& parameters) const {
  std::vector<std::string> names;
  for (auto index : parameters) names.push_back(parameters_[index].name);
  return names;
}

// What somebody used has an average now, on every rank. The rest keeps the gradient that it had, if
// parameters may be unused.
void Reducer::finish(Communicator& control) {
  std::vector<std::int32_t> used(parameters_.size(), 1);
  if (settings_.options.find_unused_parameters) used = used_anywhere(control);
  const at::NoGradGuard no_grad;
  for (auto& bucket : buckets_) {
    if (bucket.buffer) bucket.buffer->expand();
  }
  for (const auto& [index, gradient] : kept_) {
    if (used[index] == 0) part_of(parameters_[index]).copy_(gradient);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    if (auto* shard = shard_of(parameter))
      shard->finish(parameter.member, used[i] != 0);
    else if (used[i] != 0)
      parameter.variable.mutable_grad() = part_of(parameter);
  }
  make_alike(control);
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
  order_.forget();
  for (auto& room : rooms_) room.tensor.reset();
  for (auto& bucket : buckets_) {
    if (bucket.buffer) bucket.buffer->drop_copy();
  }
  for (auto& parameter : parameters_) parameter.ready = parameter.gives = parameter.used = false;
}

// What lacks memory, for one, throws before the collective, for which the others wait.
template <class Do>
void Reducer::or_abort(Do what) {
  try {
    what();
  } catch (const std::exception& failed) {
    communicator_.abort(text_of(failed));
    throw;
  }
}

void Reducer::reduce(std::size_t index) {
  auto& bucket = buckets_[index];
  or_abort([&] { bucket.shard ? reduce_shard(bucket) : reduce_buffer(bucket); });
  trace(Event::Reduced, index);
}

void Reducer::reduce_buffer(Bucket& bucket) {
  auto& buffer = *bucket.buffer;
  // A bucket that this backward has not filled, as an exception has left it, is filled now.
  if (buffer.lacks_copy()) note_filled(bucket);
  if (buffer.lacks_copy()) buffer.compress(room_of(bucket));
  const auto& averaged = buffer.averaged();
  const auto count = static_cast<std::size_t>(averaged.numel());
  if (background_ && bucket.filled) {
    background_->begin_average(averaged.data_ptr(), count, data_type_of(averaged),
                               bucket.filled->eventId());
  } else {
    communicator_.all_reduce(averaged.data_ptr(), count, data_type_of(averaged), ReduceOp::Average);
    buffer.expand();
  }
}

void Reducer::reduce_shard(Bucket& bucket) {
  std::vector<bool> has_come;
  for (auto index : bucket.members) has_come.push_back(parameters_[index].ready);
  const auto& room = room_of(bucket);
  if (bucket.filled) {
    const auto device = room.device();
    bucket.filled->block(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  bucket.shard->reduce(communicator_, has_come, room);
}

void Reducer::give_up_reductions() noexcept {
  if (background_) background_->give_up("a collective beside its averages failed");
}

void Reducer::complete_reductions() {
  if (background_) background_->complete();
}

}  // namespace troupe::train
