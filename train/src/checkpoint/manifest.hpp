#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "precision/loss_scaler.hpp"
#include "safetensors/header.hpp"

/// checkpoint.json: what the files of a checkpoint hold, and how the tensors of all ranks are put
/// together again. Pure functions and values.
///
/// 1. The elements of a tensor are in its pieces, each in one of them. Those of an optimizer's
///    state that no rank had are in none, and count as zero.
/// 2. The values of a piece are one entry of a file of safetensors, for which `files` has a
///    checksum.
/// 3. Nothing in a manifest depends on the number of ranks that read it.
namespace troupe::train {

inline constexpr auto* kManifestName = "checkpoint.json";
/// A larger file is not read. A manifest has a few hundred bytes for each piece.
inline constexpr std::uint64_t kMostManifestBytes = 1ULL << 30;

/// Elements of a tensor, as one rank wrote them.
struct SavedPiece {
  std::string file;        ///< beside the manifest
  std::string key;         ///< of the entry there
  std::int64_t first = 0;  ///< within the tensor, in the order of its memory
  std::int64_t count = 0;
  bool operator==(const SavedPiece&) const = default;
};

struct SavedTensor {
  safetensors::DType type = safetensors::DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides = {};  ///< of its memory, without gaps; empty: row by row
  std::vector<SavedPiece> pieces = {};
  bool operator==(const SavedTensor&) const = default;
};

struct SavedModel {
  std::map<std::string, SavedTensor> tensors;      ///< parameters and buffers
  std::map<std::string, std::string> shared = {};  ///< further names, and the tensor's name above
  bool operator==(const SavedModel&) const = default;
};

/// The state that an optimizer has for one parameter.
struct SavedState {
  std::string parameter;  ///< its name, for people
  std::vector<std::int64_t> shape;
  std::int64_t steps = 0;
  std::map<std::string, SavedTensor> tensors = {};  ///< "exp_avg", ...; empty: it has none yet
  bool operator==(const SavedState&) const = default;
};

struct SavedOptimizer {
  std::string type;  ///< "Adam"
  std::string
      file;  ///< LibTorch's archive: of its options, or of all of it where `groups` is empty
  std::vector<std::vector<SavedState>> groups = {};
  bool operator==(const SavedOptimizer&) const = default;
};

struct SavedFile {
  std::uint64_t bytes = 0;
  /// XXH3 (64 bits): of the values of each entry of a file of safetensors; of all bytes of another
  /// file, under the name "".
  std::map<std::string, std::uint64_t> checksums = {};
  bool operator==(const SavedFile&) const = default;
};

struct Manifest {
  int epoch = -1;  ///< the last one that was begun; -1: none
  /// Of a run with MixedPrecision::Type::Float16.
  std::optional<LossScaleState> loss_scale = {};
  int ranks = 1;       ///< of the run that wrote it
  int zero_stage = 0;  ///< of that run
  /// What that run multiplied the learning rates of its optimizers by.
  double learning_rate_scale = 1;
  std::vector<SavedModel> models = {};
  std::vector<SavedOptimizer> optimizers = {};
  std::map<std::string, SavedFile> files = {};
};

/// Adds the pieces, states and files that another rank has written.
void merge(Manifest& into, const Manifest& part);

/// JSON, with a checksum of itself.
std::string print_manifest(const Manifest& manifest);
/// Throws safetensors::FormatError, without the file's name, for what is no manifest, for one whose
/// checksum is not its own, and for one of another format.
Manifest parse_manifest(const std::string& text);
/// Throws safetensors::FormatError, naming the tensor, unless the pieces of each tensor are in
/// files that there are, do not lie on each other and leave nothing out.
void check_complete(const Manifest& manifest);

}  // namespace troupe::train
