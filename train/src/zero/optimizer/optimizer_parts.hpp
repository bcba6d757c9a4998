#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <troupe/train/communicator.hpp>
#include <troupe/train/prepared_optimizer.hpp>

#include "precision/master_weights.hpp"
#include "zero/cut_bucket.hpp"
#include "zero/flat.hpp"
#include "zero/gathering/gathering.hpp"
#include "zero/optimizer/optimizer_kind.hpp"

namespace troupe::train {

/// ZeRO (Rajbhandari et al., SC 2020, section 5): an optimizer whose parameters are cut into as
/// many parts as there are ranks. A rank keeps the state of its part alone and updates that; an
/// all-gather brings the others'. Stage 1 cuts each group of the optimizer. Stages 2 and 3 cut the
/// buckets of the model, as its gradients are cut; with stage 3 the others' parts come when they
/// are used.
///
/// Between steps the optimizer has the model's own parameters, so that zero_grad(), schedulers of
/// the learning rate and what else goes through its groups work as ever. In a step it has the
/// pieces of this rank's part in their place, and its state is that of the pieces.
///
/// With master weights the pieces of parameters of a smaller type are of float32. Without ZeRO
/// every rank has all of them then: the whole is one part. Where the optimizer is offloaded the
/// pieces are in main memory, and with them its state.
///
/// Gradients of float16 that were multiplied by a loss scale are divided in float32, in which the
/// quotient is not lost: divide_gradients() then takes copies, which are what is clipped and what
/// the next step updates with. drop_copies() drops them without a step.
///
/// 1. After a step of parameters that were the same on all ranks, all ranks have the same values of
///    all parameters.
/// 2. State that the optimizer has for a whole parameter, as after a load, is cut before it is
///    used.
/// 3. When a step ends, also by an exception, the optimizer has the model's parameters again.
///
/// Lives in one rank's process, for one optimizer, which may be moved; used by one thread.
class OptimizerParts final : public detail::OptimizerShards {
 public:
  /// `groups`: the optimizer's parameters with their names, each parameter once, and the same on
  /// all ranks in everything but the memory that they are in. The communicators outlive this:
  /// `communicator` for memory of the parameters' device, `control` for main memory. `is_cut`:
  /// among the ranks; else this rank has the whole.
  OptimizerParts(const OptimizerKind& kind, std::vector<std::vector<NamedTensor>> groups,
                 Communicator& communicator, Communicator& control, bool is_cut = true);
  /// With the gradients of stages 2 and 3. `models`: all that are prepared; those without a
  /// parameter of this optimizer are not used. `gathering`: of stage 3, else nullptr. Throws
  /// std::invalid_argument, naming the parameter, where a model has parameters here and others not.
  OptimizerParts(const OptimizerKind& kind, std::vector<std::vector<NamedTensor>> groups,
                 const std::vector<CutModel>& models, Communicator& communicator,
                 Communicator& control, std::shared_ptr<Gathering> gathering);

  /// The pieces are such copies from now on. `initial`: values of parameters before they were made
  /// smaller, with which theirs begin; nullptr: there are none.
  void keep_masters(Flat::Masters masters, InitialMasters* initial);

  void step(torch::optim::Optimizer& optimizer, const std::function<void()>& update) override;

  /// Where its state is; nullopt: it has none.
  std::optional<c10::Device> device_of_state() const;
  /// The buffers that its parameters are in.
  std::vector<std::shared_ptr<Flat>> flats() const;
  /// This rank's part of a state that the optimizer has for a whole parameter. -> whether the
  /// parameter is in one of the buffers; else nothing was done.
  bool take_state(torch::optim::Optimizer& optimizer, const at::Tensor& parameter,
                  const ElementState& whole);

  /// Whether clip_gradients() is to be asked: the gradients of a step are here, and not the
  /// parameters'.
  bool has_gradients() const { return cuts_gradients_ || has_copies_; }
  /// Where they are here: scales them so that their norm is at most `max_norm`. -> the norm
  /// that it was. A collective. Throws as step() for gradients that are no averages.
  double clip_gradients(double max_norm);
  /// Whether divide_gradients() is to be asked, and not the parameters' gradients.
  bool divides() const { return cuts_gradients_ || has_masters_; }
  /// Divides those of this rank's part, or takes copies of them that are. -> whether they were
  /// finite. Throws as step() for gradients that are no averages.
  bool divide_gradients(double scale);
  void drop_copies();

 private:
  class GradientsLent;
  class PiecesInPlace;
  struct Part {
    std::vector<std::size_t> groups;  // of each parameter
    std::shared_ptr<Flat> flat;
    std::shared_ptr<GradientShard> averages = {};  // nullptr: the parameters have whole gradients
  };

  void add_parts(const CutModel& model, const std::unordered_map<const void*, std::size_t>& groups);
  void check_parameters(const torch::optim::Optimizer& optimizer) const;
  void check_gradients() const;
  std::vector<at::Tensor> gradients() const;
  void cut_state(torch::optim::Optimizer& optimizer);
  void take_state(torch::optim::Optimizer& optimizer, Flat& flat, std::size_t parameter,
                  const ElementState& whole);

  const OptimizerKind& kind_;
  const std::vector<std::vector<NamedTensor>> groups_;
  Communicator& communicator_;
  Communicator& control_;
  const bool cuts_gradients_ = false;
  const std::shared_ptr<Gathering> gathering_ = {};
  const bool is_cut_ = true;
  bool has_masters_ = false;
  bool has_copies_ = false;  // of gradients, divided
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<void>> masters_;  // of the parts, which stay while this uses them
  std::vector<NamedTensor> whole_;              // in no part: frozen when their model was prepared
};

}  // namespace troupe::train
