#include "checkpoint/restoring/restoring.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <troupe/train/checkpoint.hpp>

#include "checkpoint/optimizer_archive.hpp"
#include "collective/broadcast_text.hpp"
#include "config/name.hpp"
#include "files/errors.hpp"
#include "parallel/torch_error.hpp"
#include "safetensors/dtype.hpp"
#include "safetensors/model_tensors.hpp"
#include "safetensors/values.hpp"
#include "zero/layout.hpp"

namespace troupe::train {
namespace {

at::Tensor unread(const SavedTensor& tensor, c10::Device device) {
  const auto options = at::TensorOptions(device).dtype(safetensors::scalar_type_of(tensor.type));
  return tensor.strides.empty() ? at::empty(tensor.shape, options)
                                : at::empty_strided(tensor.shape, tensor.strides, options);
}

/// What a model and a checkpoint have of one model.
class Match {
 public:
  Match(const SavedModel& saved, const std::filesystem::path& checkpoint)
      : saved_(saved), checkpoint_(checkpoint) {
    for (const auto& [name, tensor] : saved.tensors) left_.emplace(name, &tensor);
  }

  /// `names`: of one tensor, the first one first. The checkpoint may have one tensor for them.
  void add(const std::vector<std::string>& names, const at::Tensor& tensor) {
    const SavedTensor* found = nullptr;
    for (const auto& name : names) {
      const auto other = saved_.shared.find(name);
      const auto at = saved_.tensors.find(other == saved_.shared.end() ? name : other->second);
      if (at == saved_.tensors.end()) continue;
      if (found != nullptr && found != &at->second) {
        fail(fmt::format("'{}' is not in the model as a tensor of its own",
                         config::printable(name)));
      }
      found = &at->second;
      left_.erase(at->first);
    }
    if (found == nullptr) fail(fmt::format("it has no '{}'", config::printable(names.front())));
    check(config::printable(names.front()), tensor, *found);
    reads_.emplace_back(tensor, found);
  }
  /// -> what is to be read into which tensor
  const std::vector<std::pair<at::Tensor, const SavedTensor*>>& reads() const {
    if (!left_.empty())
      fail(fmt::format("the model has no '{}'", config::printable(left_.begin()->first)));
    return reads_;
  }

 private:
  void check(const std::string& name, const at::Tensor& tensor, const SavedTensor& saved) const {
    const auto how = safetensors::how_different(tensor, saved.shape, saved.type, "checkpoint");
    if (!how.empty()) fail(fmt::format("'{}' {}", name, how));
    if (const auto why = safetensors::why_not_writable(tensor); !why.empty()) {
      throw std::invalid_argument(
          fmt::format("the checkpoint {} cannot be loaded: nothing can be "
                      "read into '{}' of the model: {}",
                      in_words(checkpoint_), name, why));
    }
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument(
        fmt::format("the checkpoint {} is of another model: {}", in_words(checkpoint_), why));
  }

  const SavedModel& saved_;
  const std::filesystem::path& checkpoint_;
  std::map<std::string, const SavedTensor*> left_;
  std::vector<std::pair<at::Tensor, const SavedTensor*>> reads_;
};

/// `elements`: of the tensor, in the order in which it was saved.
void read_pieces(SavedFiles& files, const SavedTensor& tensor, void* elements) {
  for (const auto& piece : tensor.pieces) {
    const auto offset = static_cast<std::size_t>(piece.first) * size_of(tensor.type);
    files.read(piece, tensor.type, static_cast<std::byte*>(elements) + offset);
  }
}

void read_into(const at::Tensor& tensor, SavedFiles& files, const SavedTensor& saved) {
  if (saved.strides.empty() && safetensors::has_memory(tensor) &&
      safetensors::is_plain(tensor, safetensors::scalar_type_of(saved.type))) {
    read_pieces(files, saved, tensor.mutable_data_ptr());
    tensor.unsafeGetTensorImpl()->bump_version();  // as an operator that writes in place
  } else {
    tensor.copy_(read_tensor(files, saved));
  }
}

/// The state of a parameter as an optimizer makes it: of the parameter's type, device and strides.
at::Tensor state_like(const at::Tensor& parameter, const at::Tensor& values) {
  if (values.scalar_type() == parameter.scalar_type() && values.device() == parameter.device() &&
      values.strides() == parameter.strides())
    return values;
  return at::empty_like(parameter, parameter.options().requires_grad(false)).copy_(values);
}

[[noreturn]] void other_optimizer(const std::filesystem::path& checkpoint, std::size_t number,
                                  const std::string& why) {
  throw std::invalid_argument(fmt::format("optimizer {} of the checkpoint {} is another one: {}",
                                          number, in_words(checkpoint), why));
}

/// Why a state that was saved is none of its parameter; empty: it may be. Of the optimizers whose
/// state is saved by its tensors Adam and AdamW alone count steps.
std::string why_no_state(const SavedState& state) {
  const auto parameter = config::printable(state.parameter);
  for (const auto& [name, tensor] : state.tensors) {
    if (tensor.shape != state.shape) {
      return fmt::format("{} of '{}' has the shape [{}] there, and the parameter [{}]",
                         config::printable(name), parameter, fmt::join(tensor.shape, ", "),
                         fmt::join(state.shape, ", "));
    }
  }
  for (const char* moment : {"exp_avg", "exp_avg_sq"}) {
    if (state.steps > 0 && !state.tensors.contains(moment))
      return fmt::format("'{}' has made {} steps there, and has no {}", parameter, state.steps,
                         moment);
  }
  return "";
}

}  // namespace

at::Tensor read_tensor(SavedFiles& files, const SavedTensor& tensor) {
  auto values = unread(tensor, at::kCPU);
  std::int64_t count = 0;
  for (const auto& piece : tensor.pieces) count += piece.count;
  if (count != values.numel()) values.zero_();  // some that no rank had
  read_pieces(files, tensor, values.mutable_data_ptr());
  return values;
}

void load_model(torch::nn::Module& model, SavedFiles& files, std::size_t number) {
  const at::NoGradGuard no_grad;
  Match match(files.manifest().models.at(number), files.folder());
  for (const auto& [tensor, names] : safetensors::tensors_of(model)) match.add(names, tensor);
  translated(fmt::format("cannot load {} into the model", in_words(files.folder())), [&] {
    for (const auto& [tensor, saved] : match.reads()) read_into(tensor, files, *saved);
  });
}

Restoring::Restoring(std::filesystem::path checkpoint, std::unique_ptr<SavedFiles> files,
                     Communicator& communicator, Communicator& control)
    : checkpoint_(std::move(checkpoint)),
      communicator_(communicator),
      control_(control),
      files_(std::move(files)) {
  auto text = files_ ? print_manifest(files_->manifest()) : std::string();
  manifest_ = parse_manifest(broadcast_text(control, std::move(text)));
}

void Restoring::check_has(const char* what, std::size_t number, std::size_t has) const {
  if (number < has) return;
  throw std::invalid_argument(fmt::format(
      "{} {} is prepared, and the checkpoint {} was written with {}: give ctx.checkpoint all {}s, "
      "or prepare in this run no more than it has",
      what, number, in_words(checkpoint_), has, what));
}

void Restoring::load_model(torch::nn::Module& model, std::size_t number) {
  check_has("model", number, manifest_.models.size());
  if (files_) train::load_model(model, *files_, number);
}

/// On every rank, in main memory or in that of the rank's device.
at::Tensor Restoring::broadcast(const SavedTensor& tensor, c10::Device device) {
  auto values = files_ ? read_tensor(*files_, tensor).to(device) : unread(tensor, device);
  if (communicator_.size() == 1 || values.nbytes() == 0) return values;
  finish_writes(values);
  auto& through = device.is_cpu() ? control_ : communicator_;
  through.broadcast(values.mutable_data_ptr(), values.nbytes(), DataType::UInt8, 0);
  return values;
}

void Restoring::check_parameters(const torch::optim::Optimizer& optimizer, std::size_t number,
                                 const ParameterNames& names) const {
  const auto& saved = manifest_.optimizers[number].groups;
  const auto own = parameter_labels(optimizer, names);
  const auto differs = [&](const std::string& there, const std::string& here) {
    other_optimizer(checkpoint_, number,
                    fmt::format("it has {} there, and {} in this run", there, here));
  };
  const auto groups = [](std::size_t count) { return fmt::format("{} groups", count); };
  if (saved.size() != own.size()) differs(groups(saved.size()), groups(own.size()));
  for (std::size_t g = 0; g < own.size(); ++g) {
    const auto& params = optimizer.param_groups()[g].params();
    const auto count = [&](std::size_t parameters) {
      return fmt::format("{} parameters in group {}", parameters, g);
    };
    if (saved[g].size() != own[g].size()) differs(count(saved[g].size()), count(own[g].size()));
    for (std::size_t p = 0; p < own[g].size(); ++p) {
      const auto& there = saved[g][p];
      const auto named = [&](const std::string& label) {
        return fmt::format("'{}' as parameter {} of group {}", config::printable(label), p, g);
      };
      if (there.parameter != own[g][p] && is_named(there.parameter) && is_named(own[g][p]))
        differs(named(there.parameter), named(own[g][p]));
      const auto shaped = [&](const std::vector<std::int64_t>& shape) {
        return fmt::format("{} of the shape [{}]", named(there.parameter), fmt::join(shape, ", "));
      };
      const auto shape = params[p].sizes().vec();
      if (there.shape != shape) differs(shaped(there.shape), shaped(shape));
      if (const auto why = why_no_state(there); !why.empty())
        other_optimizer(checkpoint_, number, why);
    }
  }
}

void Restoring::load_options(torch::optim::Optimizer& optimizer, std::size_t number,
                             const ParameterNames& names, c10::Device device) {
  check_has("optimizer", number, manifest_.optimizers.size());
  const auto& saved = manifest_.optimizers[number];
  const auto type = OptimizerKind::name_of(optimizer);
  if (type != saved.type)
    other_optimizer(
        checkpoint_, number,
        fmt::format("it is of the type {}, and this run has one of the type {}", saved.type, type));
  check_parameters(optimizer, number, names);
  const auto archive = broadcast_text(control_, files_ ? files_->read(saved.file) : std::string());
  load_archive(optimizer, archive, device);
}

void Restoring::load_state(torch::optim::Optimizer& optimizer, OptimizerParts* parts,
                           std::size_t number) {
  const at::NoGradGuard no_grad;
  const auto* kind = OptimizerKind::of(optimizer);
  if (kind == nullptr) return;  // it came with the options
  const auto& groups = manifest_.optimizers[number].groups;
  const auto names = kind->tensor_names();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t p = 0; p < groups[g].size(); ++p) {
      const auto& saved = groups[g][p];
      if (saved.tensors.empty() && saved.steps == 0) continue;
      const auto& group = optimizer.param_groups().at(g);
      const auto& parameter = group.params().at(p);
      const auto where = parts != nullptr ? parts->device_of_state() : std::nullopt;
      ElementState state{.steps = saved.steps, .tensors = std::vector<at::Tensor>(names.size())};
      for (std::size_t t = 0; t < names.size(); ++t) {
        const auto found = saved.tensors.find(names[t]);
        if (found != saved.tensors.end())
          state.tensors[t] = broadcast(found->second, where.value_or(parameter.device()));
      }
      kind->complete(state, group.options());
      if (parts != nullptr && parts->take_state(optimizer, parameter, state)) continue;
      for (auto& tensor : state.tensors) {
        if (tensor.defined()) tensor = state_like(parameter, tensor);
      }
      optimizer.state()[parameter.unsafeGetTensorImpl()] = kind->make(state);
    }
  }
}

void load(torch::nn::Module& model, const std::filesystem::path& checkpoint, std::size_t number) {
  SavedFiles files(checkpoint);
  if (const auto has = files.manifest().models.size(); number >= has) {
    throw std::invalid_argument(
        fmt::format("the checkpoint {} has {} models, and none with the number {}, counted from 0",
                    in_words(checkpoint), has, number));
  }
  load_model(model, files, number);
}

}  // namespace troupe::train
