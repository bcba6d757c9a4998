#pragma once

#include <c10/core/Device.h>

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// Module::to(device), which a module may override, for all but its trained parameters: those stay
/// where they are, because they get smaller, or are cut among the ranks, before they come to the
/// device. An override sees them without elements.
void move_all_but_trained(torch::nn::Module& module, c10::Device device);

}  // namespace troupe::train
