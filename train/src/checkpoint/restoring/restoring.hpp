#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/train/communicator.hpp>

#include "checkpoint/manifest.hpp"
#include "checkpoint/parameter_labels.hpp"
#include "checkpoint/restoring/saved_files.hpp"
#include "zero/optimizer/optimizer_parts.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// The tensor, put together from its pieces, in main memory. Throws what SavedFiles throws.
at::Tensor read_tensor(SavedFiles& files, const SavedTensor& tensor);

/// Reads model `number` of a checkpoint. Parameters and buffers stay the same tensors with their
/// types and devices. Throws std::invalid_argument, naming the first difference, before anything is
/// read, where the checkpoint is of another model; and what SavedFiles throws.
void load_model(torch::nn::Module& model, SavedFiles& files, std::size_t number);

/// The checkpoint that a run continues from. Rank 0 alone need see it.
///
/// Lives in one rank's process; used by the context's thread.
class Restoring {
 public:
  /// A collective. `files`: of the checkpoint, on rank 0. `communicator`: over memory of the ranks'
  /// devices; `control`: over main memory. Both outlive this.
  Restoring(std::filesystem::path checkpoint, std::unique_ptr<SavedFiles> files,
            Communicator& communicator, Communicator& control);

  /// Of a checkpoint that was written with any number of ranks. On every rank.
  const Manifest& manifest() const { return manifest_; }

  /// Rank 0's values only. Throws std::invalid_argument where the checkpoint has fewer models, and
  /// what train::load_model throws.
  void load_model(torch::nn::Module& model, std::size_t number);
  /// A collective: every rank gets the options of optimizer `number`, and of the state what it
  /// updates: all of it where `parts` is nullptr. Throws std::invalid_argument on every rank where
  /// the checkpoint has fewer optimizers, one of another type, or one with other parameters, naming
  /// the first.
  void load_options(torch::optim::Optimizer& optimizer, std::size_t number,
                    const ParameterNames& names, c10::Device device);
  void load_state(torch::optim::Optimizer& optimizer, OptimizerParts* parts, std::size_t number);

 private:
  void check_has(const char* what, std::size_t number, std::size_t has) const;
  void check_parameters(const torch::optim::Optimizer& optimizer, std::size_t number,
                        const ParameterNames& names) const;
  at::Tensor broadcast(const SavedTensor& tensor, c10::Device device);

  const std::filesystem::path checkpoint_;
  Communicator& communicator_;
  Communicator& control_;
  const std::unique_ptr<SavedFiles> files_;  // on rank 0
  Manifest manifest_;
};

}  // namespace troupe::train
