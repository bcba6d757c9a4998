#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/context.hpp>

/// Files of safetensors (https://github.com/huggingface/safetensors, as version 0.8 has it):
/// tensors by name, which Python's `safetensors` and what is built on it read and write.
///
/// Names of a model's tensors are those of LibTorch, "0.weight", which are those of the
/// state_dict() of the same model in Python.
///
/// A path to load from is one of
/// * a file;
/// * the index of several files, "model.safetensors.index.json", as Hugging Face's hub has it;
/// * a folder with "model.safetensors", or else with that index.
///
/// All throw troupe::Error, with the file's name, for what cannot be read or written and for a file
/// that is not whole, not in the format, or of a type that LibTorch has not. Any thread; the model
/// and the tensors are used by no other thread meanwhile. The cost is that of the file's bytes:
/// they go straight between the file and the tensors' memory where that is contiguous, in main
/// memory and of the file's type.
namespace troupe::train::safetensors {

/// Words about a file, by keys.
using Metadata = std::map<std::string, std::string>;

struct Contents {
  std::map<std::string, at::Tensor> tensors;  ///< in main memory
  Metadata metadata;                          ///< of several files: of all of them
};

/// All tensors of a file, or of the files of an index.
Contents load(const std::filesystem::path& path);

/// Writes the values that the tensors show; two that share memory are written twice. The file
/// appears whole or not at all: it is written under another name (FILE.<8 digits>.tmp, which a
/// killed process leaves), made durable, and renamed. Folders above it must be there. Throws
/// std::invalid_argument for a tensor without values (undefined, or on the device `meta`), one that
/// is sparse, quantized or nested or of a type that the format lacks, and for names and words that
/// are not UTF-8.
void save(const std::map<std::string, at::Tensor>& tensors, const std::filesystem::path& file,
          const Metadata& metadata = {});

/// Writes the parameters and buffers of a model. A tensor that the model has under several names is
/// written under the first one in the order of the alphabet, and the metadata say {other name:
/// first name}, as `safetensors.torch.save_model` does. "format" is "pt" in the metadata, unless
/// `metadata` says something else. Parameters that master weights belong to are written as they
/// are, in the smaller type.
///
/// In a run call it on one rank; with ZeroOptions::stage 3 while Context::gathered(model) lives,
/// without which it throws std::logic_error.
void save(const torch::nn::Module& model, const std::filesystem::path& file,
          const Metadata& metadata = {});

struct LoadOptions {
  /// Whether each tensor of the model must be in the file, and each of the file in the model.
  bool strict = true;
  /// What a tensor of the model is called in the file; by default what it is called in the model.
  /// An empty name: nothing is looked for under this one, and the file may have a tensor of it or
  /// not; a tensor with no other name stays as it is.
  std::function<std::string(const std::string& name_in_model)> name_in_file = {};
};

/// What of a model and a file had no counterpart, in the order of the alphabet.
struct Differences {
  std::vector<std::string> missing;     ///< the model's names of what the file lacks
  std::vector<std::string> unexpected;  ///< the file's names of what was read into no tensor
};

/// Reads values into the parameters and buffers of a model, in place: they stay the same tensors,
/// on their devices, and keep their types. Values of floating point are converted; other types must
/// be the same. The whole header is looked at before the first value is read: throws
/// std::invalid_argument, naming the first difference, for a tensor of another shape, of a type
/// that is not converted, or into which nothing can be read (an expanded view, one on `meta`), and,
/// where `strict`, for what has no counterpart; the model is then as it was. (Where a disk fails
/// while values are read, the model has some of them.)
///
/// Load before Context::prepare, which gives all ranks the values of rank 0: so one rank's node
/// needs the file. Afterwards all ranks load, since nothing looks for one that does not; with
/// ZeroOptions::stage 3 while Context::gathered(model) lives, without which it throws
/// std::logic_error. With master weights they then get the values as they are rounded to the
/// smaller type.
Differences load(torch::nn::Module& model, const std::filesystem::path& path,
                 const LoadOptions& options = {});

template <ModelHandle M>
void save(const M& model, const std::filesystem::path& file, const Metadata& metadata = {}) {
  save(train::detail::existing(model), file, metadata);
}

template <ModelHandle M>
Differences load(const M& model, const std::filesystem::path& path,
                 const LoadOptions& options = {}) {
  return load(train::detail::existing(model), path, options);
}

}  // namespace troupe::train::safetensors
