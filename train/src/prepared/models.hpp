#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <troupe/train/plan.hpp>

#include "checkpoint/restoring/restoring.hpp"
#include "normalization/batch_statistics.hpp"
#include "parallel/averaging/reducer.hpp"
#include "parallel/averaging/reduction_queue.hpp"
#include "parallel/batch_share.hpp"
#include "parallel/buckets.hpp"
#include "parallel/parameter_names.hpp"
#include "parallel/parameter_watch.hpp"
#include "precision/master_weights.hpp"
#include "prepared/communicators_on_demand.hpp"
#include "prepared/context_rank.hpp"
#include "zero/cut_bucket.hpp"
#include "zero/gathering/gathering.hpp"

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// The models that a context has prepared, and what averages their gradients and brings their
/// parameters.
///
/// The program owns the models, which may end before the context or after it. This class owns of
/// each model the Reducer and the ParameterWatch, shares the buckets into which ZeRO cuts the
/// model, and owns what all models have in common: the ReductionQueue, with ZeRO's stage 3 the
/// Gathering, with layers SyncBatchNorm the BatchStatistics, which these hold weakly, and with
/// master weights the values that the parameters had before they became smaller.
///
/// 1. A model that is prepared after n others loads model n of the checkpoint from which the run
///    continues. A model that is prepared again keeps its place, and nothing is loaded.
/// 2. prepare() returns with the same parameters and buffers on all ranks.
/// 3. A parameter has its type and its device before there are hooks on it, which are lost where
///    either changes.
/// 4. No gradient is averaged while a guard of Context::no_sync() lives, whenever its model was
///    prepared.
/// 5. Reducers end before the queue, and the queue before the communicators, which the context
///    owns. What hold() returns owns its buckets, so that it may outlive this class.
///
/// Lives in one rank's process; used by the context's thread. Hooks run in the threads of backward,
/// and use the queue, the reducers and the Gathering alone.
class PreparedModels {
 public:
  /// `for_parameters`: parameters of stage 3 come while gradients are averaged, and so by
  /// communicators of their own, and so do the statistics of SyncBatchNorm, by `for_statistics`.
  /// `restoring`: nullptr where the run does not continue from a checkpoint. `masters`: nullptr
  /// without master weights.
  PreparedModels(const ContextRank& here, CommunicatorsOnDemand& communicators,
                 CommunicatorsOnDemand& for_parameters, CommunicatorsOnDemand& for_statistics,
                 Restoring* restoring, std::unique_ptr<InitialMasters> masters);
  ~PreparedModels();
  PreparedModels(const PreparedModels&) = delete;
  PreparedModels& operator=(const PreparedModels&) = delete;

  /// A collective: what Context::prepare() does for a model. Where it throws, a model that was
  /// prepared before keeps its hooks, which tell in backward what has changed; with stage 3 each
  /// rank has the whole of that model's parameters then.
  void prepare(std::shared_ptr<torch::nn::Module> module);
  /// A collective with stage 3, and else nothing. Called before ranks wait for each other
  /// elsewhere: one of them may still need parameters of which the others have parts.
  void meet();
  /// A collective with stage 3: this rank has all values of the model's parameters until what is
  /// returned ends. nullptr: this rank has all values anyway.
  std::shared_ptr<void> hold(const torch::nn::Module& module);
  /// `guards`: of Context::no_sync(), that have begun; negative: that have ended.
  void count_unsynchronized(int guards);
  /// What this rank's batches count for from here on, in all models.
  void set_share(const BatchShare& share) { *share_ = share; }
  const BatchShare& share() const { return *share_; }

  /// Of all models so far, also of those that have ended.
  const ModelSize& size() const { return size_; }
  /// Of all parameters that live. Those of a model that has ended, as a Sequential does while its
  /// layers live on, have the names that they had when it was prepared.
  ParameterNames parameter_names() const;
  /// All models, also those that have ended; a model that is not cut has no buckets.
  std::vector<CutModel> cut_models() const;
  /// The values of all buckets, model by model.
  std::vector<std::shared_ptr<Flat>> cut_values() const;
  /// nullptr before stage 3 has cut a model.
  const std::shared_ptr<Gathering>& gathering() const { return gathering_; }
  /// nullptr without master weights.
  InitialMasters* masters() const { return masters_.get(); }

 private:
  using KnownParameter = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct KnownName {
    KnownParameter parameter;
    std::string name;
  };
  struct Prepared {
    std::weak_ptr<torch::nn::Module> module;
    std::vector<KnownName> names = {};      // as it was prepared
    std::shared_ptr<Reducer> reducer = {};  // nullptr: nothing is averaged
    std::shared_ptr<const ParameterWatch> watch = {};
    CutModel cut = {};  // with ZeRO's stages 2 and 3
  };

  static std::vector<KnownName> names_of(const torch::nn::Module& module);
  std::vector<std::shared_ptr<torch::nn::Module>> living() const;
  bool cuts_values() const;
  void warn_of_one_rank();
  void make_alike(torch::nn::Module& module);
  void connect_statistics(torch::nn::Module& module);
  void average_gradients(Prepared& prepared, const std::shared_ptr<torch::nn::Module>& module);
  void cut(Prepared& prepared, const std::vector<NamedTensor>& trained);
  void make_gathering();
  void connect_ends();
  std::vector<CutModel> cut_models_but(const torch::nn::Module& module) const;
  std::vector<std::shared_ptr<Flat>> values_with(const std::vector<at::Tensor>& parameters) const;

  const ContextRank& here_;
  CommunicatorsOnDemand& communicators_;
  CommunicatorsOnDemand& for_parameters_;
  CommunicatorsOnDemand& for_statistics_;
  Restoring* const restoring_;
  std::shared_ptr<ReductionQueue> queue_;  // with several ranks, from the first trained model on
  std::shared_ptr<Gathering> gathering_;   // the queue tells it of ends
  const std::shared_ptr<BatchShare> share_ = std::make_shared<BatchShare>();
  std::shared_ptr<BatchStatistics> statistics_;  // from the first model on that has a SyncBatchNorm
  std::vector<Prepared> models_;                 // end before the queue
  ModelSize size_ = {};
  int unsynchronized_ = 0;  // guards of no_sync() that live
  bool has_warned_ = false;
  const std::unique_ptr<InitialMasters> masters_;
};

}  // namespace troupe::train
