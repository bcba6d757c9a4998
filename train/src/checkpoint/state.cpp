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

/// The tensor in memory of its own, with the values that it shows.
torch::Tensor resolved(const torch::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg();
}

/// The tensor has the type that it has in the archive, where both are of floating point.
void show_type_of_archive(const torch::Tensor& tensor, torch::serialize::InputArchive& archive,
                          const std::string& key, bool is_buffer, ShownMemory& shown) {
  torch::Tensor saved;
  if (!tensor.defined() || !archive.try_read(key, saved, is_buffer) || !saved.defined()) return;
  if (tensor.scalar_type() == saved.scalar_type() || !tensor.is_floating_point() ||
      !saved.is_floating_point())
    return;
  shown.show(tensor, tensor.detach().to(saved.scalar_type()));
}

/// The tensors of floating point of a module have the type that they have in the archive:
/// LibTorch's load has a tensor look at the archive's memory as at values of the tensor's own type.
void show_types_of_archive(const torch::nn::Module& module, torch::serialize::InputArchive& archive,
                           ShownMemory& shown) {
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    show_type_of_archive(item.value(), archive, item.key(), false, shown);
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    show_type_of_archive(item.value(), archive, item.key(), true, shown);
  for (const auto& child : module.named_children()) {
    torch::serialize::InputArchive of_child;
    if (archive.try_read(child.key(), of_child))
      show_types_of_archive(*child.value(), of_child, shown);
  }
}

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
    ShownMemory shown;  // afterwards a view looks at the memory of its base again
    for (const auto& tensor : lazy_tensors(module)) shown.show(tensor, resolved(tensor));
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
    for (auto& tensor : lazy_tensors(module)) tensor.set_data(resolved(tensor));
    ShownMemory shown;
    show_types_of_archive(module, archive, shown);
    module.load(archive);
    // The tensors have the new values, and their own types again.
    for (const auto& [tensor, original] : shown.release())
      show(tensor, tensor.detach().to(original.scalar_type()));
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
