#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/train/checkpoint.hpp>
#include <troupe/train/communicator.hpp>
#include <troupe/train/context_options.hpp>
#include <troupe/train/data/join.hpp>
#include <troupe/train/data/loader.hpp>
#include <troupe/train/data/sampler.hpp>
#include <troupe/train/model_handle.hpp>
#include <troupe/train/prepared_optimizer.hpp>
#include <troupe/train/weights.hpp>
#include <troupe/trainable.hpp>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

namespace detail {
template <class T>
concept OptimizerLike = std::is_base_of_v<torch::optim::Optimizer, T>;
}  // namespace detail

/// One rank's view of its training run, and its collective operations: the first argument of a
/// trainable. It lives as long as the trainable runs, and only the trainable's thread uses it.
///
/// prepare(), checkpoint(), report(), gathered(), backward() of a prepared model, and with ZeRO or
/// MixedPrecision::Type::Float16 step() of a prepared optimizer and clip_grad_norm(), are
/// collective: every rank calls them, in the same order. They throw GangBroken when another rank
/// died or failed, and TimedOut, naming the missing ranks. If a trainable throws, or returns
/// (`host`) while others wait for it, their collectives end with an error that names its rank. With
/// ZeroOptions::stage 3 operators that use a parameter throw the same, and so does forward() of a
/// model with a SyncBatchNorm.
///
/// An exception that leaves backward() on one rank makes backward() fail on all ranks: the others
/// get GangBroken, which names the rank. Ranks that catch it may continue with the next step after
/// they have dropped the gradients of this one; with ZeroOptions::stage 3 unless parameters failed
/// to come.
class Context {
 public:
  /// With the run's options for contexts: RunOptions::context, or those of the sweep.
  explicit Context(Member& member);
  /// With these options in place of the run's.
  Context(Member& member, ContextOptions options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ContextOptions& options() const;  ///< the options that this context was made with
  int rank() const;                       ///< 0 .. world_size() - 1
  int local_rank() const;                 ///< among the ranks on this node
  int world_size() const;
  /// The run's seed, the same on every rank: RunOptions::seed, or the trial's own.
  std::uint64_t seed() const;
  /// cuda:<local rank> if the process was given GPUs and LibTorch can use them, else the CPU.
  c10::Device device() const;
  /// The communicator is made at the first call, which is therefore collective. Throws what
  /// make_host_communicator and make_nccl_communicator throw.
  Communicator& communicator();

  /// After backward(), a parameter's gradient lies in a buffer that the next step writes: clone() a
  /// gradient that is to be kept beyond that, also one that zero_grad(true) has taken off. With
  /// ZeroOptions::stage 2 and 3 it is a tensor without memory, on the device `meta`: each rank has
  /// the average of one part, for step().
  ///
  /// Moves the model to device(), gives every rank the parameters and buffers of rank 0 (those of
  /// the checkpoint from which the run continues, if any), and averages gradients over the ranks
  /// before backward() returns. The model keeps its type and its parameter names;
  /// MixedPrecision::master_weights changes parameters of float32 to a smaller type. Throws
  /// std::invalid_argument, naming the first difference, if the ranks' models differ in parameters,
  /// their strides, frozen parameters, buffers, or the buckets of gradients, or if their contexts
  /// differ in DataParallelOptions, ZeroOptions (but for offload_optimizer), MixedPrecision or
  /// scale_learning_rates. Several models may take part in one backward, the same ones on every
  /// rank: prepare all of them before the first backward. A model that was changed (parameters
  /// unfrozen, another type) is prepared again after zero_grad(); it keeps its place in
  /// checkpoints, and nothing is loaded. Until then backward() throws std::logic_error, naming the
  /// first parameter whose gradient would not be averaged. A gradient that is undefined counts as
  /// zero. Buffers (running means), of a model with trained parameters, are rank 0's again after
  /// each backward that averages, unless DataParallelOptions::broadcast_buffers says otherwise.
  template <class M>
  requires(!detail::OptimizerLike<M>) M prepare(M model) {
    prepare_module(detail::module_of(model));
    return model;
  }
  /// Multiplies the optimizer's learning rates by learning_rate_scale().
  ///
  /// Loads the optimizer's state and options (learning rate, ...) from the checkpoint from which
  /// the run continues, if any. In a trial that took over another trial's checkpoint, the optimizer
  /// gets only the state and keeps the options that it was made with. Its step() need not wait,
  /// because gradients are averages once backward() has returned. Make the optimizer after the
  /// model was prepared, because moving a model to a GPU gives it new parameters. With several
  /// ranks throws std::invalid_argument for an optimizer none of whose parameters is of a prepared
  /// model; others that it has beside those of one are not averaged.
  ///
  /// With ZeroOptions or MixedPrecision::master_weights this is a collective that moves the values
  /// of the parameters into buffers, the parameters stay the same tensors, and with ZeroOptions
  /// step() is a collective. Throws std::invalid_argument for an optimizer that is not Adam, AdamW
  /// or SGD, that has a parameter twice, or one that no prepared model has, with stages 2 and 3 one
  /// that has some of a model's trained parameters and not all, and if the ranks' optimizers
  /// differ, naming the first difference.
  template <detail::OptimizerLike O>
  PreparedOptimizer<O> prepare(O optimizer) {
    static_assert(!std::is_base_of_v<detail::AnyPreparedOptimizer, O>,
                  "this optimizer was prepared before; prepare each optimizer once");
    auto preparation = prepare_optimizer(optimizer);
    return {std::move(optimizer), std::move(preparation)};
  }

  /// What prepare(optimizer) multiplies learning rates by (ContextOptions::scale_learning_rates),
  /// for programs that compute the rate of each step themselves. 1 by default.
  double learning_rate_scale() const;

  /// While it lives, backward() does not average this rank's gradients. To accumulate gradients
  /// over several batches, run all but the last of them under it, on every rank. The first backward
  /// after it averages all that was accumulated, also of parameters and models that it does not
  /// come to itself. Guards may be inside of each other: the last one that ends counts.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(Context& context);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Context& context_;
  };
  NoSync no_sync() { return NoSync(*this); }

  /// While it or a copy of it lives, this rank has all values of the model's parameters, and
  /// whatever it does with them needs no other rank: to evaluate on one rank alone, or to reach for
  /// memory (`data_ptr`, torch::save). A collective with ZeroOptions::stage 3, where the ranks need
  /// memory for the whole model meanwhile and step() is refused; else nothing.
  class [[nodiscard]] Gathered {
   private:
    friend class Context;
    explicit Gathered(std::shared_ptr<void> held) : held_(std::move(held)) {}
    std::shared_ptr<void> held_;
  };
  template <ModelHandle M>
  Gathered gathered(const M& model) {
    return gather(detail::existing(model));
  }

  /// Rank 0's copy of the model's parameters and buffers, to be returned, sent or kept; elsewhere
  /// an empty one. Parameters that master weights belong to are as they are, in the smaller type. A
  /// collective with ZeroOptions::stage 3, as gathered().
  template <ModelHandle M>
  Weights weights(const M& model) {
    const auto& module = detail::existing(model);
    const auto whole = gather(module);
    return rank() == 0 ? weights_of(module) : Weights();
  }

  /// While it lives, LibTorch's autocast is on in this thread: the operators on its list for the
  /// smaller type (products of matrices, convolutions) compute in ContextOptions::mixed_precision's
  /// type, those on its list for float32 (sums, norms and losses that would lose digits) compute in
  /// float32, and all others compute in the type of their inputs. The forward pass and the loss
  /// belong under the guard, backward() does not. The guard's end restores the settings that its
  /// beginning found; guards may be inside of each other. With Type::Float32 it does nothing.
  class [[nodiscard]] Autocast {
   public:
    explicit Autocast(const Context& context);
    ~Autocast();
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

   private:
    struct Before;
    std::unique_ptr<Before> before_;
  };
  Autocast autocast() const { return Autocast(*this); }

  /// `ctx.scaled(loss).backward()`: the loss times the scale that MixedPrecision::Type::Float16
  /// needs, and the loss itself with other types. A loss is scaled for each backward, also under
  /// no_sync(); the step() of a prepared optimizer divides the gradients, and what reads them
  /// before is clip_grad_norm(), which divides them too. With MixedPrecision::master_weights and
  /// ZeroOptions::offload_optimizer those are copies: the parameters' gradients stay multiplied.
  /// The scale changes here, by the steps since the last call, so that all optimizers step after
  /// the same losses, or drop their gradients between. Throws std::logic_error where no optimizer
  /// was prepared, and std::runtime_error on all ranks where gradients are not finite although the
  /// scale is the smallest.
  at::Tensor scaled(const at::Tensor& loss);
  /// By what the last loss was scaled. Before the first loss it is the scale that the first loss
  /// will have. It is 1 with types that need no scale.
  double loss_scale() const;
  /// In this run, not counting what was before its checkpoint.
  std::int64_t skipped_steps() const;

  /// Scales the gradients of the optimizer's parameters so that their norm (the square root of the
  /// sum of all their squares) is at most `max_norm`, as torch::nn::utils::clip_grad_norm_ does. ->
  /// the norm that it was, the same on every rank. To be called between backward() and step(). With
  /// ZeroOptions::stage 2 and 3 a collective, which throws the errors of step() where gradients are
  /// no averages. With Type::Float16 a collective that first divides the gradients by the loss
  /// scale. With both throws std::logic_error for an optimizer that is not what prepare() returned.
  double clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm);

  /// `for (int epoch : ctx.epochs(n))`: 0 .. n - 1. If the run continues from a checkpoint, it
  /// begins with the epoch after that of the checkpoint, and rank 0 of train::run logs where, once.
  /// Ends early once a report was answered with Stop.
  class Epochs;
  Epochs epochs(int count);

  /// This rank's rows of a data set, shuffled by the epoch and by seed(), which is added to
  /// SamplerOptions::seed.
  DistributedSampler sampler(std::size_t rows, SamplerOptions options = {}) const;
  /// This rank's batches of an epoch: sampler(rows) with set_epoch(epoch), on device(). The first
  /// one says what effective_batch() has not said: `batch` times world_size().
  Loader loader(const Dataset& data, std::int64_t batch, int epoch,
                SamplerOptions options = {}) const;

  /// `for (auto& batch : ctx.join(batches))`: for ranks that have different numbers of batches, of
  /// which the rank with the most decides how many steps all make. A rank whose batches have ended
  /// goes through its last one again, and so takes part in all collectives of the step; the
  /// gradients of such a batch count as zero, in averages over all ranks. What PyTorch's Join does,
  /// with any optimizer and stage of ZeRO, and with clipping, float16 and schedules as they are.
  ///
  /// `batches`: anything that a range-based `for` takes, whose values can be copied. A collective:
  /// each step begins with a small all-gather. Throws std::invalid_argument on every rank where a
  /// rank has no batch at all and another has one, and std::logic_error inside of another such
  /// loop, and on every rank where some are in another loop or step of it. Where the loop is left
  /// before its end, all ranks leave it after the same step. backward() of a batch is called in the
  /// step of the batch. Buffers are those of the first rank whose batch counts.
  template <class Batches>
  Joined<Batches> join(Batches&& batches) {
    return {*this, std::forward<Batches>(batches)};
  }
  /// Whether the batch at hand, in a loop of join(), is one that this rank goes through again: what
  /// the program adds up itself, such as losses, leaves it out.
  bool repeats_batch() const;

  /// For the run's progress bar (ShowProgress), where the steps are no batches of loader(): tells on
  /// rank 0 that `done` of `total` steps are done, of this epoch where there are epochs(); `total`
  /// 0: it is not known. Called after each step or less often, and first with what is done as the
  /// run begins: the rate counts from there. `unit`: what is counted, in the plural. Never waits; costs
  /// next to nothing where nobody looks, as in a sweep. Any thread. Throws std::invalid_argument
  /// for a negative number.
  void progress(std::int64_t done, std::int64_t total, std::string_view unit = "steps");

  /// How many rows of all ranks one step of the optimizer sees, for RunResult::effective_batch: to
  /// be called where loader() does not know it, because gradients accumulate over several batches
  /// or batches come from elsewhere. Rank 0's last call counts. Throws std::invalid_argument for a
  /// number below 1.
  void effective_batch(std::int64_t rows);

  /// Reports metrics to the run. Blocks until the report was judged; all ranks get the same
  /// verdict. After Stop the trainable should return; its next report throws.
  Verdict report(const Metrics& metrics, const Checkpoint& checkpoint = {});

  /// Writes models and optimizers, in the order given, and the epoch, into
  /// <storage>/checkpoint_<number>, where it appears whole or not at all. A collective: each rank
  /// writes the parts of parameters and of the optimizers' state that it alone has, and rank 0 what
  /// all ranks have. A rank that does not see rank 0's directory, on another node, sends it its
  /// part. Rank 0 returns once the checkpoint is committed, and others once they have written their
  /// part. Runs without storage write nothing.
  ///
  /// Where a file cannot be written the training goes on: the reason is logged, and is in
  /// Checkpoint::error. A run that continues from the checkpoint prepares models and optimizers in
  /// the same order, with any number of ranks and any stage of ZeRO. Throws troupe::Error
  /// where the storage cannot be made; std::invalid_argument for a tensor that the format has no
  /// place for; std::logic_error, with ZeRO or master weights, for an
  /// optimizer that is not what prepare() returned.
  template <class... T>
  Checkpoint checkpoint(const T&... parts) {
    return save(/*copies=*/false, parts...).wait();
  }
  /// The same, but returns once this rank's part is copied to main memory, and a thread writes it
  /// while the training goes on; the copy is freed then. A save that is still in flight is waited
  /// for first, and so it is when the context ends; where the function ends by an exception it is
  /// given up. A checkpoint counts once it is reported:
  ///
  ///     auto saving = ctx.begin_checkpoint(model, optimizer);
  ///     ... the next epoch ...
  ///     ctx.report(metrics_of_the_epoch_before, saving.wait());
  template <class... T>
  CheckpointSave begin_checkpoint(const T&... parts) {
    return save(/*copies=*/true, parts...);
  }

  /// Of the error that is being handled: where it says that the device's memory is full, its text
  /// gets what train::plan() advises for the context's models. Called where the function of a run
  /// has thrown.
  friend void add_advice(Context& context) noexcept;
  /// Tells other ranks, which may wait for it, of an error with which this rank fails to prepare
  /// something. It ends the context's collectives: calls of the others throw GangBroken with its text.
  /// A std::logic_error may be that of all ranks, and is told only where it leaves the function.
  friend void tell_failure(Context& context, const std::exception& failed) noexcept;
  friend class detail::JoinedSteps;
  /// Of what the function of a run has returned on every rank: a model of ZeroOptions::stage 3,
  /// which could not be used after its context, is replaced by one with all values on rank 0.
  template <ReturnableModel M>
  friend void complete_value(Context& context, M& model) {
    if (context.options().zero.stage != 3 || context.world_size() == 1 || !model) return;
    detail::check_own_class(*model, typeid(detail::ClassOf<M>));
    const auto weights = context.weights(model);
    const bool is_training = model->is_training();
    model = detail::made_without_arguments<M>();
    if (context.rank() == 0)
      detail::load_like(*model, weights, is_training,
                        troupe::detail::type_name<detail::ClassOf<M>>);
  }

 private:
  struct Impl;
  void prepare_module(std::shared_ptr<torch::nn::Module> module);
  detail::Preparation prepare_optimizer(torch::optim::Optimizer& optimizer);
  Gathered gather(const torch::nn::Module& module);
  CheckpointSave save(const std::vector<std::shared_ptr<torch::nn::Module>>& models,
                      const std::vector<const torch::optim::Optimizer*>& optimizers, bool copies);
  template <class... T>
  CheckpointSave save(bool copies, const T&... parts) {
    std::vector<std::shared_ptr<torch::nn::Module>> models;
    std::vector<const torch::optim::Optimizer*> optimizers;
    auto sort = [&]<class P>(const P& part) {
      if constexpr (detail::OptimizerLike<P>)
        optimizers.push_back(&part);
      else
        models.push_back(detail::module_of(part));
    };
    (sort(parts), ...);
    return save(models, optimizers, copies);
  }
  /// -> false: there is none to begin.
  bool begin_epoch(int epoch, int count);

  std::unique_ptr<Impl> impl_;
};

class Context::Epochs {
 public:
  struct End {};
  class Iterator {
   public:
    Iterator(Context& context, int epoch, int count)
        : context_(context), epoch_(epoch), count_(count) {}
    int operator*() const { return epoch_; }
    Iterator& operator++() {
      ++epoch_;
      return *this;
    }
    bool operator!=(End) const { return context_.begin_epoch(epoch_, count_); }

   private:
    Context& context_;
    int epoch_;
    int count_;
  };
  Epochs(Context& context, int first, int count)
      : context_(context), first_(first), count_(count) {}
  Iterator begin() const { return {context_, first_, count_}; }
  End end() const { return {}; }

 private:
  Context& context_;
  int first_;
  int count_;
};

}  // namespace troupe::train
