#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::node {

struct Gpu {
  std::uint32_t index = 0;  ///< NVML's: in the order of the PCI bus
  std::string uuid;         ///< "GPU-..."; what CUDA_VISIBLE_DEVICES is given; empty: the index is
  std::string name;
  std::uint64_t memory_bytes = 0;
};

/// The GPUs that NVIDIA's management library finds, which is loaded now; none where it is not there
/// or has no driver. Touches no CUDA. Of them, those that `visible` names, as CUDA_VISIBLE_DEVICES
/// does (indices or starts of UUIDs, up to the first that is neither); nullptr: all.
std::vector<Gpu> find_gpus(const char* visible, const char* library = "libnvidia-ml.so.1");

/// The indices of those that the library counts and cannot open: find_gpus() leaves them out, as a node
/// does. A GPU that has fallen off the bus is one; one that this user may not open is not, as where
/// a cluster's scheduler has given it to somebody else.
std::vector<std::uint32_t> lost_gpus(const char* library = "libnvidia-ml.so.1");

/// The value of CUDA_VISIBLE_DEVICES that shows these of the node's GPUs, by their places in the
/// node's list: the head counts a node's GPUs from 0, whatever their numbers on the bus are. A
/// place that the list has not stands for itself: the node was told of more GPUs than were found.
std::string visible_devices(const std::vector<Gpu>& of_node,
                            const std::vector<std::uint32_t>& places);

}  // namespace troupe::node
