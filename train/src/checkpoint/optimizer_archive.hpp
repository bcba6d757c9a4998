#pragma once

#include <string>

#include <c10/core/Device.h>

namespace torch::optim {
class Optimizer;
}

/// Optimizers in LibTorch's format.
namespace troupe::train {

/// Throws troupe::Error with LibTorch's reason.
std::string archive_of(const torch::optim::Optimizer& optimizer);

/// Throws troupe::Error with LibTorch's reason.
void load_archive(torch::optim::Optimizer& optimizer, const std::string& archive,
                  c10::Device device);

}  // namespace troupe::train
