#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <troupe/train/safetensors.hpp>

#include "config/name.hpp"
#include "files/errors.hpp"
#include "parallel/torch_error.hpp"
#include "safetensors/model_tensors.hpp"
#include "safetensors/source.hpp"
#include "safetensors/values.hpp"

namespace troupe::train::safetensors {
namespace {

/// Tensors and their names are in alphabetical order, since Python's save_model writes a tensor
/// under the name that is the first in it.
std::vector<ModelTensor> sorted_tensors_of(const torch::nn::Module& model) {
  auto tensors = tensors_of(model);
  for (auto& each : tensors) std::ranges::sort(each.names);
  std::ranges::sort(tensors, {}, &ModelTensor::names);
  return tensors;
}

void check_memory(const std::vector<ModelTensor>& tensors) {
  for (const auto& [tensor, names] : tensors) {
    if (!has_memory(tensor))
      throw std::logic_error(
          fmt::format("the values of '{}' are not here: with stage 3 of ZeRO, hold "
                      "ctx.gathered(model) on all ranks while the model is saved or loaded",
                      names.front()));
  }
}

/// Which tensors are read, and what has no counterpart.
struct Match {
  std::vector<std::pair<at::Tensor, Source::Place>> reads;
  Differences differences;
};

[[noreturn]] void does_not_fit(const Source& source, const std::string& why) {
  throw std::invalid_argument(
      fmt::format("{} does not fit the model: {}", in_words(source.path()), why));
}

/// Throws std::invalid_argument where the entry cannot be read into the tensor.
void check_fit(const Source& source, const std::string& name, const at::Tensor& tensor,
               const std::string& name_in_file, const Entry& entry) {
  auto own = fmt::format("'{}'", config::printable(name));
  if (name != name_in_file)
    own += fmt::format(" (in the file '{}')", config::printable(name_in_file));
  if (const auto why = why_not_writable(tensor); !why.empty())
    does_not_fit(source, fmt::format("nothing can be read into {}: {}", own, why));
  if (const auto how = how_different(tensor, entry.shape, entry.type, "file"); !how.empty())
    does_not_fit(source, fmt::format("{} {}", own, how));
}

/// Of one tensor of the model. `left`: names of the file that no tensor has had.
void match_tensor(const ModelTensor& each, const Source& source, const LoadOptions& options,
                  std::set<std::string>& left, Match& match) {
  std::string wanted;  // the first name that is looked for
  bool is_found = false;
  for (const auto& name : each.names) {
    const auto in_file = options.name_in_file ? options.name_in_file(name) : name;
    if (in_file.empty()) {
      left.erase(name);
      continue;
    }
    if (wanted.empty()) wanted = name;
    const auto at = source.tensors().find(in_file);
    // A tensor has one value, of the first of its names that the file has.
    if (is_found || at == source.tensors().end()) continue;
    check_fit(source, name, each.tensor, in_file, *at->second.entry);
    match.reads.emplace_back(each.tensor, at->second);
    left.erase(in_file);
    is_found = true;
  }
  if (!wanted.empty() && !is_found) match.differences.missing.push_back(wanted);
}

Match match_all(const std::vector<ModelTensor>& tensors, const Source& source,
                const LoadOptions& options) {
  Match match;
  std::set<std::string> left;
  for (const auto& [name, place] : source.tensors()) left.insert(name);
  for (const auto& each : tensors) match_tensor(each, source, options, left, match);
  match.differences.unexpected.assign(left.begin(), left.end());
  std::ranges::sort(match.differences.missing);
  return match;
}

/// "3 ('a', 'b', ...)"
std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const auto& name : names) {
    if (quoted.size() == kMostNamed) {
      quoted.emplace_back("...");
      break;
    }
    quoted.push_back(fmt::format("'{}'", config::printable(name)));
  }
  return fmt::format("{} ({})", names.size(), fmt::join(quoted, ", "));
}

void check_no_differences(const Source& source, const Differences& differences) {
  const auto& [missing, unexpected] = differences;
  if (missing.empty() && unexpected.empty()) return;
  std::vector<std::string> parts;
  if (!missing.empty())
    parts.push_back(fmt::format("the file lacks {} of the model's tensors", some_of(missing)));
  if (!unexpected.empty())
    parts.push_back(
        fmt::format("the model has no place for {} of the file's", some_of(unexpected)));
  does_not_fit(source, fmt::format("{}; say by .name_in_file what a tensor is called there, or "
                                   "take what fits by .strict = false",
                                   fmt::join(parts, ", and ")));
}

}  // namespace

void save(const torch::nn::Module& model, const std::filesystem::path& file,
          const Metadata& metadata) {
  std::map<std::string, at::Tensor> tensors;
  auto words = metadata;
  words.emplace("format", "pt");
  const auto all = sorted_tensors_of(model);
  check_memory(all);
  for (const auto& [tensor, names] : all) {
    tensors.emplace(names.front(), tensor);
    for (std::size_t i = 1; i < names.size(); ++i) words.emplace(names[i], names.front());
  }
  save(tensors, file, words);
}

Differences load(torch::nn::Module& model, const std::filesystem::path& path,
                 const LoadOptions& options) {
  const Source source(path);
  const auto tensors = sorted_tensors_of(model);
  check_memory(tensors);
  const auto match = match_all(tensors, source, options);
  if (options.strict) check_no_differences(source, match.differences);
  translated(fmt::format("cannot load {} into the model", in_words(source.path())), [&] {
    for (const auto& [tensor, place] : match.reads) read_into(tensor, place);
  });
  return match.differences;
}

}  // namespace troupe::train::safetensors
