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
    module.load(archive);
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
