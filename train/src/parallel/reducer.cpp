#include "parallel/reducer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "parallel/tensor_type.hpp"

namespace troupe::train {
namespace {

std::size_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
}

}  // namespace

/// Runs after a parameter's gradient was accumulated.
class Reducer::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(std::weak_ptr<Reducer> reducer, std::size_t index) : reducer_(std::move(reducer)), index_(index) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (auto reducer = reducer_.lock()) reducer->on_gradient(index_);
    return outputs;
  }

 private:
  std::weak_ptr<Reducer> reducer_;
  std::size_t index_;
};

std::shared_ptr<Reducer> Reducer::make(Communicator& communicator, std::vector<NamedTensor> parameters,
                                       const DataParallelOptions& options, Trace trace) {
  std::shared_ptr<Reducer> reducer(new Reducer(communicator, options, std::move(trace)));
  reducer->fill_buckets(std::move(parameters));
  reducer->install_hooks();
  return reducer;
}

Reducer::Reducer(Communicator& communicator, const DataParallelOptions& options, Trace trace)
    : communicator_(communicator), options_(options), trace_(std::move(trace)) {}

Reducer::~Reducer() {
  for (auto& parameter : parameters_) parameter.accumulator->del_post_hook(parameter.hook);
  if (!thread_.joinable()) return;
  stopping_.store(true);
  submitted_.fetch_add(1);
  submitted_.notify_one();
  thread_.join();
}

// A bucket ends where the next parameter would make it too large, or is of another type or device.
void Reducer::fill_buckets(std::vector<NamedTensor> parameters) {
  std::reverse(parameters.begin(), parameters.end());
  std::size_t filled = 0;
  for (auto& [name, tensor] : parameters) {
    const auto limit = buckets_.size() <= 1 ? options_.first_bucket_bytes : options_.bucket_bytes;
    const bool fits = !buckets_.empty() && filled + bytes_of(tensor) <= limit &&
                      tensor.options().type_equal(parameters_[buckets_.back().members.front()].variable.options());
    if (!fits) {
      buckets_.emplace_back();
      filled = 0;
    }
    filled += bytes_of(tensor);
    buckets_.back().members.push_back(parameters_.size());
    parameters_.push_back(
        {.name = std::move(name), .variable = tensor, .part = {}, .bucket = buckets_.size() - 1, .accumulator = {}});
  }
  for (auto& bucket : buckets_) allocate(bucket);
}

void Reducer::allocate(Bucket& bucket) {
  std::int64_t elements = 0;
  for (auto index : bucket.members) elements += parameters_[index].variable.numel();
  const auto& first = parameters_[bucket.members.front()].variable;
  const auto options = first.options().requires_grad(false);
  data_type_of(first);  // refuses what cannot be reduced
  if (first.device().is_cpu())
    bucket.memory = communicator_.allocate(static_cast<std::size_t>(elements) * first.element_size());
  bucket.flat = bucket.memory ? at::from_blob(
                                    bucket.memory.get(), {elements}, [kept = bucket.memory](void*) {}, options)
                              : at::zeros({elements}, options);
  std::int64_t at = 0;
  for (auto index : bucket.members) {
    auto& parameter = parameters_[index];
    // The same memory, but no view of `flat` to autograd: Optimizer::zero_grad detaches gradients in place, which views refuse.
    auto* memory = static_cast<char*>(bucket.flat.data_ptr()) + static_cast<std::size_t>(at) * first.element_size();
    parameter.part = at::from_blob(
        memory, parameter.variable.sizes(), [kept = bucket.flat](void*) {}, options);
    at += parameter.variable.numel();
  }
}

void Reducer::install_hooks() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.variable);
    parameter.hook = parameter.accumulator->add_post_hook(std::make_unique<Hook>(weak_from_this(), i));
  }
}

void Reducer::on_gradient(std::size_t index) {
  if (!synchronized_) return;
  if (!in_backward_) begin_backward();
  auto& parameter = parameters_[index];
  if (parameter.ready) {
    throw std::logic_error(
        fmt::format("parameter {} got its gradient twice in one backward (a backward inside of it?); "
                    "run all but the last under no_sync()",
                    parameter.name));
  }
  mark_ready(parameter);
  submit_full_buckets();
}

void Reducer::begin_backward() {
  full_ = 0;
  for (auto& parameter : parameters_) parameter.ready = false;
  for (auto& bucket : buckets_) bucket.waiting = bucket.members.size();
  in_backward_ = true;
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this()] {
    if (auto reducer = weak.lock()) reducer->end_backward();
  });
}

// A gradient that autograd made itself, which it does whenever there was none, moves into its part of the bucket.
void Reducer::mark_ready(Parameter& parameter) {
  const at::NoGradGuard no_grad;
  auto& gradient = parameter.variable.mutable_grad();
  if (!gradient.defined()) {
    parameter.part.zero_();
  } else if (gradient.layout() != at::kStrided) {
    throw std::invalid_argument(
        fmt::format("the gradient of {} is sparse; only dense gradients are averaged", parameter.name));
  } else if (gradient.unsafeGetTensorImpl() != parameter.part.unsafeGetTensorImpl()) {
    parameter.part.copy_(gradient);
    gradient = parameter.part;
  }
  parameter.ready = true;
  --buckets_[parameter.bucket].waiting;
}

void Reducer::submit_full_buckets() {
  for (; full_ < buckets_.size() && buckets_[full_].waiting == 0; ++full_) {
    trace(Event::Submitted, full_);
    if (full_ + 1 == buckets_.size()) continue;  // backward's own thread reduces it
    if (!thread_.joinable()) thread_ = std::thread([this] { run_thread(); });
    submitted_.fetch_add(1, std::memory_order_release);
    submitted_.notify_one();
  }
}

void Reducer::end_backward() {
  in_backward_ = false;
  const auto unused = add_unused();
  await_thread();
  if (error_) std::rethrow_exception(error_);
  reduce(buckets_.size() - 1);
  if (options_.find_unused_parameters) share_unused(unused);
  trace(Event::BackwardEnded, buckets_.size());
}

std::vector<std::size_t> Reducer::add_unused() {
  std::vector<std::size_t> unused;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].ready) unused.push_back(i);
  }
  if (!unused.empty() && !options_.find_unused_parameters) refuse_unused(unused);
  const at::NoGradGuard no_grad;
  for (auto index : unused) {
    auto& parameter = parameters_[index];
    const auto& had = parameter.variable.grad();
    if (!had.defined())
      parameter.part.zero_();
    else if (had.unsafeGetTensorImpl() != parameter.part.unsafeGetTensorImpl())
      parameter.part.copy_(had);
    parameter.ready = true;
    --buckets_[parameter.bucket].waiting;
  }
  submit_full_buckets();
  return unused;
}

void Reducer::refuse_unused(const std::vector<std::size_t>& unused) {
  constexpr std::size_t kNamed = 10;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kNamed, unused.size()); ++i) names.push_back(parameters_[unused[i]].name);
  if (unused.size() > kNamed) names.push_back(fmt::format("and {} more", unused.size() - kNamed));
  const auto message = fmt::format(
      "{} of {} parameters got no gradient in this backward: {}. The loss must depend on all of them, or set "
      "DataParallelOptions::find_unused_parameters",
      unused.size(), parameters_.size(), fmt::join(names, ", "));
  communicator_.abort(message);
  await_thread();
  throw std::logic_error(message);
}

// Ranks may have used different parameters. What somebody used has an average now, on every rank.
void Reducer::share_unused(const std::vector<std::size_t>& unused) {
  std::vector<std::int32_t> flags(parameters_.size(), 1);
  for (auto index : unused) flags[index] = 0;
  auto used = at::tensor(flags, at::kInt).to(buckets_.front().flat.device());
  communicator_.all_reduce(used.data_ptr(), flags.size(), DataType::Int32, ReduceOp::Max);
  const auto anywhere = used.cpu();
  for (auto index : unused) {
    if (anywhere.const_data_ptr<std::int32_t>()[index] != 0)
      parameters_[index].variable.mutable_grad() = parameters_[index].part;
  }
}

void Reducer::reduce(std::size_t bucket) {
  auto& flat = buckets_[bucket].flat;
  communicator_.all_reduce(flat.data_ptr(), static_cast<std::size_t>(flat.numel()), data_type_of(flat),
                           ReduceOp::Average);
  trace(Event::Reduced, bucket);
}

void Reducer::await_thread() {
  const auto target = submitted_.load();
  for (auto done = done_.load(std::memory_order_acquire); done < target; done = done_.load(std::memory_order_acquire)) {
    done_.wait(done, std::memory_order_acquire);
  }
}

void Reducer::run_thread() {
  for (std::uint64_t next = 0;; ++next) {
    for (auto seen = submitted_.load(std::memory_order_acquire); seen <= next;
         seen = submitted_.load(std::memory_order_acquire)) {
      submitted_.wait(seen, std::memory_order_acquire);
    }
    if (stopping_.load()) return;
    try {
      if (!error_) reduce(next % (buckets_.size() - 1));
    } catch (...) {
      error_ = std::current_exception();
    }
    done_.store(next + 1, std::memory_order_release);
    done_.notify_one();
  }
}

}  // namespace troupe::train
