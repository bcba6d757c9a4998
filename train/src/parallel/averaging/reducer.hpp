#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <troupe/train/communicator.hpp>
#include <troupe/train/data_parallel.hpp>

#include "collective/background_reductions.hpp"
#include "parallel/averaging/gradient_buffer.hpp"
#include "parallel/averaging/gradient_order.hpp"
#include "parallel/averaging/model_buffers.hpp"
#include "parallel/averaging/reduction_queue.hpp"
#include "parallel/batch_share.hpp"
#include "parallel/buckets.hpp"
#include "parallel/parameter_watch.hpp"
#include "zero/gradient_shard.hpp"

namespace torch::autograd {
struct FunctionPreHook;
struct Node;
}  // namespace torch::autograd

namespace troupe::train {

/// Averages gradients over the ranks while backward still runs (Li et al., PyTorch Distributed,
/// VLDB 2020).
///
/// Parameters are put, in reverse order, since backward comes to the last ones first, into buckets,
/// each with a GradientBuffer whose parts the gradients become. A hook behind each parameter's
/// accumulation moves a gradient that is elsewhere into its part; the hook that fills a bucket
/// tells the queue of the context, which reduces the buckets of all models in an order that the
/// ranks share, while backward goes on. When backward() returns, all gradients are averages.
///
/// After the first backward the buckets are made anew where rank 0's gradients came in another
/// order, unless some may not come at all (find_unused_parameters). The gradients move.
///
/// With ZeRO's stage 2 a bucket is no buffer: a gradient stays where autograd made it until its
/// bucket is reduced, and a GradientShard keeps the rank's part of the averages. Its buckets stay
/// what they are, as those of the parameters' values are the same.
///
/// On a GPU the reductions run beside backward: each begins once its bucket is filled there, which
/// an event in the stream of the hook that filled it says, and the thread that runs them waits for
/// none before the end, but with stage 2 for each.
///
/// Lives in one rank's process, for one model. Hooks hold it weakly, so the model may live longer.
/// Used by the thread that runs backward, but for reduce().
class Reducer final : public Reducible, public std::enable_shared_from_this<Reducer> {
 public:
  /// For tests: what happened, in order, from two threads.
  enum class Event { Submitted, Reduced, BackwardEnded };
  using Trace = std::function<void(Event, std::size_t bucket)>;
  /// Which averages a rank keeps, and whether the part is in main memory.
  enum class Keeps { All, Part, PartInMainMemory };
  struct Settings {
    DataParallelOptions options = {};
    Keeps keeps = Keeps::All;
    /// What the gradients of each backward count for, also of one that does not average.
    std::shared_ptr<const BatchShare> share = std::make_shared<BatchShare>();
    /// Those that are the same on all ranks after each backward that averages.
    std::optional<ModelBuffers> buffers = {};
    /// Of the model's parameters: a backward that averages while the model has others, whose
    /// gradients no reducer averages, is an error. nullptr: it is not noticed.
    std::shared_ptr<const ParameterWatch> watch = {};
    Trace trace = {};
  };

  /// `parameters`: those that want gradients, each once, the same on every rank. A collective:
  /// `queue` gets its models, and `communicator` allocates, in one order on all ranks.
  /// `communicator` outlives the reducer.
  static std::shared_ptr<Reducer> make(std::shared_ptr<ReductionQueue> queue,
                                       Communicator& communicator,
                                       std::vector<NamedTensor> parameters, Settings settings);
  ~Reducer() override;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Backward waits while more full buckets than these are not reduced, whose gradients take memory
  /// until then. nullopt, and at first: it waits for none, as where operators of backward wait for
  /// other ranks.
  void set_most_waiting(std::optional<std::size_t> buckets) { most_waiting_ = buckets; }
  /// false: backward leaves the gradients of this rank as they are, until one with true averages
  /// them.
  void set_synchronized(bool on) { synchronized_ = on; }

  /// Of each bucket; empty with Keeps::All.
  std::vector<std::shared_ptr<GradientShard>> shards() const;

  std::string name() const override;
  std::size_t buckets() const override { return buckets_.size(); }
  bool owes_average() const override;
  bool zero_where_unused() const override { return settings_.options.find_unused_parameters; }
  void reduce(std::size_t bucket) override;
  void complete_reductions() override;
  void give_up_reductions() noexcept override;
  void fill() override;
  void fill_with_zeros() override;
  void finish(Communicator& control) override;
  void reset() override;

 private:
  struct Parameter {
    std::string name;
    at::Tensor variable;
    std::size_t bucket = 0;
    std::size_t member = 0;  // of its bucket
    std::shared_ptr<torch::autograd::Node> accumulator;
    std::uintptr_t hook = 0;
    torch::autograd::FunctionPreHook* before = nullptr;  // of the accumulator
    bool ready = false;                                  // in this backward
    bool gives = false;                                  // a gradient, in this backward
    bool used = false;  // it was given a gradient since its last average
  };
  struct Bucket {
    std::unique_ptr<GradientBuffer> buffer;  // or
    std::shared_ptr<GradientShard> shard;
    std::size_t room = 0;
    std::vector<std::size_t> members;
    std::size_t waiting = 0;           // members that are not ready in this backward
    std::optional<c10::Event> filled;  // on a GPU
  };
  /// For buckets of one type, while they are reduced to their shards, or compressed: in a backward
  /// alone.
  struct Room {
    at::TensorOptions options;
    std::int64_t elements = 0;
    at::Tensor tensor;
  };
  class Hook;
  class HookBefore;

  Reducer(std::shared_ptr<ReductionQueue> queue, Communicator& communicator,
          std::vector<NamedTensor> parameters, Settings settings);
  std::vector<std::vector<std::size_t>> members_in(const std::vector<std::int64_t>& order) const;
  void make_buckets(const std::vector<std::int64_t>& order);
  std::vector<NamedTensor> parameters_of(const Bucket& bucket) const;
  void follow_order(Communicator& control);
  void make_alike(Communicator& control);
  void plan_rooms();
  at::Tensor& room_of(const Bucket& bucket);
  template <class Do>
  void or_abort(Do what);
  void reduce_buffer(Bucket& bucket);
  void reduce_shard(Bucket& bucket);
  void install_hooks();

  void refuse_second(const Parameter& parameter) const;
  void before_gradient(std::size_t index);
  void on_gradient(std::size_t index);
  void begin_backward();
  void expect_all();
  void mark_ready(Parameter& parameter);
  void submit_full_buckets();
  void note_filled(Bucket& bucket);
  void add_unused();
  const at::Tensor& part_of(const Parameter& parameter) const {
    return buckets_[parameter.bucket].buffer->part(parameter.member);
  }
  bool has_gradient(const Parameter& parameter) const;
  bool owes(const Parameter& parameter) const { return parameter.used && has_gradient(parameter); }
  GradientShard* shard_of(const Parameter& parameter) const {
    return buckets_[parameter.bucket].shard.get();
  }
  std::vector<std::int32_t> used_anywhere(Communicator& control) const;
  /// Whether a reducer averages the gradient of this parameter, which may be of another model.
  static bool averages(const at::Tensor& parameter);
  std::vector<std::string> names_of(const std::vector<std::size_t>& parameters) const;
  void trace(Event event, std::size_t bucket) {
    if (settings_.trace) settings_.trace(event, bucket);
  }

  const std::shared_ptr<ReductionQueue> queue_;
  Communicator& communicator_;
  BackgroundReductions* const background_;  // the communicator, if it can do that
  const Settings settings_;
  std::optional<std::size_t> ordinal_;  // in the queue; none: not added yet
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<Room> rooms_;
  bool synchronized_ = true;
  std::optional<std::size_t> most_waiting_ = {};
  bool in_backward_ = false;
  // Buckets of this backward that are full, up to the first that is not.
  std::size_t full_ = 0;
  bool follows_order_ = false;       // the buckets are those of an observed order
  GradientOrder order_;              // of this backward
  std::vector<std::size_t> unused_;  // parameters that got no gradient since their last average
  // Gradients, before a reduction, of parameters that no rank may have used.
  std::vector<std::pair<std::size_t, at::Tensor>> kept_;
};

}  // namespace troupe::train
