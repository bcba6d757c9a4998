#include "checkpoint/state.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <troupe/errors.hpp>

#include "parallel/shown_memory.hpp"
#include "parallel/torch_error.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

/// The module's tensors whose memory holds other values than the tensors show: LibTorch conjugates
/// and negates by a bit, which its archives neither write nor clear.
std::vector<torch::Tensor> lazy_tensors(const torch::nn::Module& module) {
  auto all = module.parameters();
  for (auto& buffer : module.buffers()) all.push_back(std::move(buffer));
  std::erase_if(all, [](const torch::Tensor& tensor) {
    return !tensor.defined() || !(tensor.is_conj() || tensor.is_neg());
  });
  return all;
}

/// While this lives, the tensors of floating point of a module have the type that they have in the
/// archive: LibTorch's load has a tensor look at the archive's memory as at values of the tensor's own
/// type. They are what they were before where nobody calls take_values().
class TypesOfArchive {
 public:
  // Delegates, so that the destructor runs where LibTorch throws for one of the tensors.
  TypesOfArchive(const torch::nn::Module& module, torch::serialize::InputArchive& archive)
      : TypesOfArchive() {
    take(module, archive);
  }
  ~TypesOfArchive() {
    for (const auto& [tensor, original] : originals_) show(tensor, original);
  }
  TypesOfArchive(const TypesOfArchive&) = delete;
  TypesOfArchive& operator=(const TypesOfArchive&) = delete;

  /// The module was loaded: its tensors have the new values, and their own types again.
  void take_values() {
    for (const auto& [tensor, original] : std::exchange(originals_, {}))
      show(tensor, tensor.detach().to(original.scalar_type()));
  }

 private:
  TypesOfArchive() = default;

  void take(const torch::nn::Module& module, torch::serialize::InputArchive& archive) {
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      take(item.value(), archive, item.key(), false);
    for (const auto& item : module.named_buffers(/*recurse=*/false))
      take(item.value(), archive, item.key(), true);
    for (const auto& child : module.named_children()) {
      torch::serialize::InputArchive of_child;
      if (archive.try_read(child.key(), of_child)) take(*child.value(), of_child);
    }
  }
  void take(const torch::Tensor& tensor, torch::serialize::InputArchive& archive,
            const std::string& key, bool is_buffer) {
    torch::Tensor saved;
    if (!tensor.defined() || !archive.try_read(key, saved, is_buffer) || !saved.defined()) return;
    if (tensor.scalar_type() == saved.scalar_type() || !tensor.is_floating_point() ||
        !saved.is_floating_point())
      return;
    originals_.emplace_back(tensor, tensor.detach());
    show(tensor, tensor.detach().to(saved.scalar_type()));
  }

  std::vector<std::pair<torch::Tensor, torch::Tensor>> originals_;
};

/// Gives the tensor memory of its own, with the values that the tensor shows.
void resolve(torch::Tensor& tensor) {
  tensor.set_data(tensor.detach().resolve_conj().resolve_neg());
}

/// The module's tensors are resolved as long as this lives, and are afterwards what they were
/// before: a view looks at the memory of its base again.
class ResolvedWhileSaving {
 public:
  // Delegates, so that the destructor runs where LibTorch throws for one of the tensors.
  explicit ResolvedWhileSaving(const torch::nn::Module& module) : ResolvedWhileSaving() {
    for (auto& tensor : lazy_tensors(module)) {
      resolved_.emplace_back(tensor, tensor.detach());
      resolve(tensor);
    }
  }
  ~ResolvedWhileSaving() {
    for (auto& [tensor, original] : resolved_) tensor.set_data(original);
  }
  ResolvedWhileSaving(const ResolvedWhileSaving&) = delete;
  ResolvedWhileSaving& operator=(const ResolvedWhileSaving&) = delete;

 private:
  ResolvedWhileSaving() = default;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> resolved_;
};

/// LibTorch's own writer ends the process where the disk is full: it throws from a destructor. Throws
/// troupe::Error.
void write_archive(torch::serialize::OutputArchive& archive, const fs::path& file) {
  std::ofstream out(file, std::ios::binary);
  int failed = out ? 0 : errno;
  archive.save_to([&](const void* bytes, std::size_t count) {
    errno = 0;
    if (failed == 0 &&
        !out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count)))
      failed = errno == 0 ? EIO : errno;
    return count;
  });
  errno = 0;
  if (failed == 0 && !out.flush()) failed = errno == 0 ? EIO : errno;
  if (failed == 0) return;
  throw Error(
      Failure{.kind = Failure::Kind::Unknown,
              .message = fmt::format("cannot write {}: {}", file.string(), std::strerror(failed))});
}

}  // namespace

void save_module(const torch::nn::Module& module, const fs::path& file) {
  translated(fmt::format("cannot write {}", file.string()), [&] {
    const ResolvedWhileSaving resolved(module);
    torch::serialize::OutputArchive archive;
    module.save(archive);
    write_archive(archive, file);
  });
}

void save_optimizer(const torch::optim::Optimizer& optimizer, const fs::path& file) {
  translated(fmt::format("cannot write {}", file.string()), [&] {
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    write_archive(archive, file);
  });
}

void load_module(torch::nn::Module& module, const fs::path& file, c10::Device device) {
  translated(fmt::format("cannot load {} into the model", file.string()), [&] {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string(), device);
    for (auto& tensor : lazy_tensors(module)) resolve(tensor);
    TypesOfArchive types(module, archive);
    module.load(archive);
    types.take_values();
  });
}

void load_optimizer(torch::optim::Optimizer& optimizer, const std::string& bytes,
                    c10::Device device) {
  translated("cannot load the checkpoint's state into the optimizer", [&] {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size(), device);
    optimizer.load(archive);
  });
}

}  // namespace troupe::train
