#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "checkpoint/manifest.hpp"
#include "checkpoint/saving/shard_file.hpp"
#include "parallel/parameter_names.hpp"
#include "precision/master_weights.hpp"
#include "zero/flat.hpp"
#include "zero/optimizer/optimizer_parts.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// Collects what one rank writes of a checkpoint: its pieces of the parameters and of the
/// optimizers' state that are cut among the ranks, and on rank 0 all that every rank has whole.
///
/// 1. All ranks add the same, in the same order; together their pieces are complete.
/// 2. Nothing here is a collective, and no operator uses a parameter of which this rank holds a
///    part.
///
/// The values are the memory of the training where `copies` is false and they are in main memory:
/// the training waits then until they are written. Used by one thread.
class RankPart {
 public:
  RankPart(int rank, bool copies) : rank_(rank), copies_(copies) {}

  /// Ranks write the pieces that they have of the parameters of these buffers. Of a parameter that
  /// is in several the last one counts.
  void add_cut(const std::vector<std::shared_ptr<Flat>>& buckets);
  /// Parameters of a smaller type are written in float32 from now on. `initial`: values of those
  /// that are in no bucket.
  void write_float32(const InitialMasters& initial) { initial_ = &initial; }

  /// Throws std::invalid_argument, naming the tensor, for one whose values the format has no place
  /// for.
  void add_model(const torch::nn::Module& model);
  /// `parts`: into which its parameters are cut; nullptr: every rank has its whole state. Throws
  /// troupe::Error with LibTorch's reason.
  void add_optimizer(const torch::optim::Optimizer& optimizer, const OptimizerParts* parts,
                     const ParameterNames& names);

  Manifest& manifest() { return manifest_; }
  ShardFiles& files() { return files_; }

 private:
  struct Place {
    std::shared_ptr<Flat> flat;
    std::size_t parameter;
  };

  std::string file_of(const std::string& what) const;
  void add_tensor(std::map<std::string, SavedTensor>& tensors, const std::string& file,
                  const std::string& name, const std::string& key, const at::Tensor& tensor);
  void add_pieces(std::map<std::string, SavedTensor>& tensors, const std::string& file,
                  const std::string& name, const std::string& key, const Place& place,
                  const std::function<at::Tensor(std::size_t piece)>& values_of);
  void add_values(const SavedTensor& tensor, const SavedPiece& piece, const at::Tensor& values);
  at::Tensor whole_value(const at::Tensor& parameter) const;
  void add_state(SavedState& state, const std::string& file, const OptimizerKind& kind,
                 const torch::optim::Optimizer& optimizer, const at::Tensor& parameter,
                 const Place* place);

  const int rank_;
  const bool copies_;
  const InitialMasters* initial_ = nullptr;  // nullptr: parameters are written in their own type
  std::unordered_map<const void*, Place> cut_;
  Manifest manifest_;
  ShardFiles files_;
};

}  // namespace troupe::train
