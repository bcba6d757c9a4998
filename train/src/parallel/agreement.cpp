#include "parallel/agreement.hpp"

#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <unordered_set>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include "collective/broadcast_text.hpp"
#include "precision/scalar_type.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kDifferenceBytes = 512;

/// Gradients, and parts of what is cut, lie as their parameter does; a frozen one has neither.
std::string describe(const NamedTensor& of, bool is_parameter) {
  std::ostringstream shape, strides;
  shape << of.tensor.sizes();
  if (is_parameter && of.tensor.requires_grad() && !of.tensor.is_contiguous())
    strides << " with strides " << of.tensor.strides();
  return fmt::format("{} {} {}{}{}", of.name, shape.str(), c10::toString(of.tensor.scalar_type()),
                     strides.str(), is_parameter && !of.tensor.requires_grad() ? " frozen" : "");
}

const char* words_of(GradientCompression compression) {
  return compression == GradientCompression::BFloat16 ? "BFloat16" : "None";
}

const char* words_of(LearningRateScaling scaling) {
  switch (scaling) {
    case LearningRateScaling::Linear:
      return "Linear";
    case LearningRateScaling::SquareRoot:
      return "SquareRoot";
    default:
      return "None";
  }
}

std::string words_of(const LossScaleOptions& scale) {
  return fmt::format("initial {}, window {}, hysteresis {}{}, smallest {}, fixed {}", scale.initial,
                     scale.window, scale.hysteresis,
                     scale.consecutive_hysteresis ? " (consecutive)" : "", scale.smallest,
                     scale.fixed);
}

std::string as_options(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += "option\t" + line + "\n";
  return text;
}

/// "NAME is VALUE", of those that decide which collectives there are, and what comes of a step: so
/// ZeroOptions::offload_optimizer, which says where a rank's part is updated, is its own.
std::string describe(const ContextOptions& options) {
  const auto& [type, scale, masters] = options.mixed_precision;
  std::vector<std::string> lines{
      fmt::format("find_unused_parameters is {}", options.data_parallel.find_unused_parameters),
      fmt::format("broadcast_buffers is {}", options.data_parallel.broadcast_buffers),
      fmt::format("compression is {}", words_of(options.data_parallel.compression)),
      fmt::format("zero.stage is {}", options.zero.stage),
      fmt::format("mixed_precision.type is {}", c10::toString(scalar_type_of(type))),
      fmt::format("mixed_precision.master_weights is {}", masters),
      fmt::format("scale_learning_rates is {}", words_of(options.scale_learning_rates))};
  if (options.zero.stage == 3) {
    lines.push_back(fmt::format("zero.prefetch is {}", options.zero.prefetch));
    lines.push_back(fmt::format("zero.offload_parameters is {}", options.zero.offload_parameters));
  }
  if (type == MixedPrecision::Type::Float16)
    lines.push_back(fmt::format("mixed_precision.loss_scale is {}", words_of(scale)));
  return as_options(lines);
}

/// One line for each thing to compare: what it is one of, a tab, and what it is.
std::string describe(const ModelLayout& model, const DataParallelOptions& options) {
  std::string text;
  for (const auto& parameter : model.parameters)
    text += "parameter\t" + describe(parameter, true) + "\n";
  for (const auto& buffer : model.buffers) text += "buffer\t" + describe(buffer, false) + "\n";
  const auto buckets = assign_buckets(model.trained, options);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    text += fmt::format("gradient\t{} in bucket {}\n", model.trained[buckets.size() - 1 - i].name,
                        buckets[i]);
  return text;
}

using Lines = std::vector<std::string>;

/// The lines of one kind, without it.
Lines lines_of(const std::string& text, const std::string& kind) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kind + "\t")) lines.push_back(line.substr(kind.size() + 1));
  }
  return lines;
}

/// "" if they are the same.
std::string first_difference(const std::string& theirs, const std::string& mine,
                             const std::string& kind) {
  const auto there = lines_of(theirs, kind);
  const auto here = lines_of(mine, kind);
  for (std::size_t i = 0; i < std::max(there.size(), here.size()); ++i) {
    const std::string nothing = "nothing";
    const auto& a = i < there.size() ? there[i] : nothing;
    const auto& b = i < here.size() ? here[i] : nothing;
    if (a != b) {
      return fmt::format("{} {} is \"{}\", on rank 0 it is \"{}\" ({} {}s, on rank 0 {})", kind, i,
                         b, a, here.size(), kind, there.size());
    }
  }
  return "";
}

/// Options first: what follows may differ because they do.
std::string first_difference(const std::string& theirs, const std::string& mine) {
  for (const auto* kind : {"option", "type", "parameter", "buffer", "gradient"}) {
    if (auto difference = first_difference(theirs, mine, kind); !difference.empty())
      return difference;
  }
  return "";
}

at::Tensor bytes_on(const std::string& bytes, c10::Device device) {
  return at::from_blob(const_cast<char*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())},
                       at::kByte)
      .clone()
      .to(device);
}

std::string bytes_from(const at::Tensor& tensor) {
  const auto here = tensor.cpu();
  return {static_cast<const char*>(here.const_data_ptr()), static_cast<std::size_t>(here.numel())};
}

std::vector<std::string> gather_bytes(Communicator& communicator, std::string bytes,
                                      std::size_t width, c10::Device device) {
  bytes.resize(width);
  const auto mine = bytes_on(bytes, device);
  auto all = at::empty({communicator.size(), static_cast<std::int64_t>(width)}, mine.options());
  communicator.all_gather(mine.const_data_ptr(), all.data_ptr(), width, DataType::UInt8);
  const auto text = bytes_from(all);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size(); at += width) parts.push_back(text.substr(at, width));
  return parts;
}

/// Rank 0's text, on every rank.
std::string broadcast_text_on(Communicator& communicator, const std::string& text,
                              c10::Device device) {
  return broadcast_text(text, [&](void* bytes, std::size_t count) {
    const auto here = at::from_blob(bytes, {static_cast<std::int64_t>(count)}, at::kByte);
    const auto there = here.to(device);
    communicator.broadcast(there.data_ptr(), count, DataType::UInt8, 0);
    here.copy_(there);
  });
}

/// What a difference means.
using FailureOf = std::function<std::string(const std::string& difference)>;

void check_same(Communicator& communicator, const FailureOf& failure_of, const std::string& mine,
                c10::Device device) {
  const auto theirs = broadcast_text_on(communicator, mine, device);
  const auto differences =
      gather_bytes(communicator, first_difference(theirs, mine), kDifferenceBytes, device);
  for (std::size_t rank = 0; rank < differences.size(); ++rank) {
    const std::string difference = differences[rank].c_str();
    if (difference.empty()) continue;
    throw std::invalid_argument(
        fmt::format("{}: on rank {} {}", failure_of(difference), rank, difference));
  }
}

void check_same(Communicator& communicator, const std::string& failure, const std::string& mine,
                c10::Device device) {
  const FailureOf always = [&failure](const std::string&) { return failure; };
  check_same(communicator, always, mine, device);
}

}  // namespace

ModelLayout layout_of(const torch::nn::Module& module) {
  ModelLayout layout;
  std::unordered_set<const void*> known;
  for (const auto& item : module.named_parameters()) {
    const auto& tensor = item.value();
    if (!tensor.defined() || !known.insert(tensor.unsafeGetTensorImpl()).second) continue;
    layout.parameters.push_back({item.key(), tensor});
    if (tensor.requires_grad()) layout.trained.push_back({item.key(), tensor});
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) layout.buffers.push_back({item.key(), item.value()});
  }
  return layout;
}

void check_models_agree(Communicator& communicator, const ModelLayout& model,
                        const ContextOptions& options, c10::Device device) {
  if (communicator.size() == 1) return;
  const FailureOf failure_of = [](const std::string& difference) {
    return difference.starts_with("option ") ? "the ranks' contexts have different options"
                                             : "the ranks prepared different models";
  };
  check_same(communicator, failure_of, describe(options) + describe(model, options.data_parallel),
             device);
}

void check_optimizers_agree(Communicator& communicator, const std::string& type,
                            const std::vector<std::vector<NamedTensor>>& groups,
                            c10::Device device) {
  if (communicator.size() == 1) return;
  auto text = fmt::format("type\t{}\n", type);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const auto& parameter : groups[group])
      text += fmt::format("parameter\t{} in group {}\n", describe(parameter, true), group);
  }
  check_same(communicator, "the ranks prepared different optimizers", text, device);
}

void check_options_agree(Communicator& communicator, const std::string& what,
                         const std::vector<std::string>& options, c10::Device device) {
  if (communicator.size() == 1) return;
  check_same(communicator, "the ranks prepared different " + what, as_options(options), device);
}

void broadcast_tensors(Communicator& communicator, const std::vector<NamedTensor>& tensors,
                       c10::Device device, int root) {
  if (communicator.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.numel() == 0) continue;
    // Whose conjugate or negative is only noted, on some ranks, is computed first.
    auto there = tensor.detach().to(device).resolve_conj().resolve_neg().contiguous();
    communicator.broadcast(there.data_ptr(),
                           static_cast<std::size_t>(there.numel()) * there.element_size(),
                           DataType::UInt8, root);
    if (communicator.rank() != root && there.const_data_ptr() != tensor.const_data_ptr())
      tensor.detach().copy_(there);
  }
}

}  // namespace troupe::train
