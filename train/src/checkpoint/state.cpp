#include "checkpoint/state.hpp"

#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include "parallel/torch_error.hpp"

namespace troupe::train {
namespace fs = std::filesystem;

void save_module(const torch::nn::Module& module, const fs::path& file) {
  translated(fmt::format("cannot write {}", file.string()), [&] {
    torch::serialize::OutputArchive archive;
    module.save(archive);
    archive.save_to(file.string());
  });
}

void save_optimizer(const torch::optim::Optimizer& optimizer, const fs::path& file) {
  translated(fmt::format("cannot write {}", file.string()), [&] {
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    archive.save_to(file.string());
  });
}

void load_module(torch::nn::Module& module, const fs::path& file, c10::Device device) {
  translated(fmt::format("cannot load {} into the model", file.string()), [&] {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string(), device);
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
