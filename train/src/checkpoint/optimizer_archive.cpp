#include "checkpoint/optimizer_archive.hpp"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include "parallel/torch_error.hpp"
#include "zero/optimizer/optimizer_kind.hpp"

namespace troupe::train {

std::string archive_of(const torch::optim::Optimizer& optimizer) {
  std::string bytes;
  const auto what =
      fmt::format("LibTorch cannot save the state of {}; give ctx.checkpoint the model alone",
                  OptimizerKind::name_of(optimizer));
  translated(what, [&] {
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    archive.save_to([&](const void* next, std::size_t count) {
      bytes.append(static_cast<const char*>(next), count);
      return count;
    });
  });
  return bytes;
}

void load_archive(torch::optim::Optimizer& optimizer, const std::string& bytes,
                  c10::Device device) {
  translated("cannot load the checkpoint's state into the optimizer", [&] {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size(), device);
    optimizer.load(archive);
  });
}

}  // namespace troupe::train
