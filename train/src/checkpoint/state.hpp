#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "precision/loss_scaler.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

/// Models and optimizers as files of a checkpoint: model0.pt, optimizer0.pt, ... in LibTorch's
/// format, checkpoint.json.
namespace troupe::train {

/// Throws troupe::Error with LibTorch's reason, like all of these. No other thread may use the
/// module meanwhile: its conjugated and negated views are replaced until the file is written.
void save_module(const torch::nn::Module& module, const std::filesystem::path& file);
void save_optimizer(const torch::optim::Optimizer& optimizer, const std::filesystem::path& file);
/// In place: the module keeps its parameters and buffers, and these their type if both it and that in
/// the file are of floating point. A conjugated or negated view is a plain tensor then.
void load_module(torch::nn::Module& module, const std::filesystem::path& file, c10::Device device);
/// `bytes`: of a file that save_optimizer wrote.
void load_optimizer(torch::optim::Optimizer& optimizer, const std::string& bytes,
                    c10::Device device);

struct CheckpointInfo {
  int epoch = -1;  ///< the last one that was begun; -1: none
  int models = 0;
  int optimizers = 0;
  int world_size = 1;
  /// Of a run with MixedPrecision::Type::Float16.
  std::optional<LossScaleState> loss_scale = {};
};
void write_info(const CheckpointInfo& info, const std::filesystem::path& file);
CheckpointInfo read_info(const std::filesystem::path& file);
std::string read_file(const std::filesystem::path& file);

}  // namespace troupe::train
