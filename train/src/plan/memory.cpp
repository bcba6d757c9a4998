#include "plan/memory.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::train {
namespace {

constexpr std::uint64_t kFloat32 = 4;
constexpr std::uint64_t kSmall = 2;    // float16 and bfloat16
constexpr std::uint64_t kWaiting = 3;  // buckets of gradients: two that are full, and one more
constexpr std::uint64_t kWaitingLonger = 4;  // the same of stage 3, about: backward waits for none
constexpr std::uint64_t kGathered = 3;     // buckets of stage 3: two that stay, and one that comes
constexpr std::uint64_t kTemporaries = 2;  // of the size of a parameter, in an optimizer's update
constexpr std::uint64_t kStaged = 2;       // buckets on their way between device and main memory

std::uint64_t divided_up(std::uint64_t count, int ranks) {
  const auto parts = static_cast<std::uint64_t>(ranks);
  return count / parts + (count % parts == 0 ? 0 : 1);
}

/// What the memory of one rank is made of: counts are of elements.
struct Sizes {
  int ranks = 1;
  std::uint64_t trained = 0;
  std::uint64_t part = 0;  // of a rank, of the trained elements
  std::uint64_t largest = 0;
  std::uint64_t value_bytes = kFloat32;  // of an element of a parameter, and of its gradient
  std::uint64_t master_bytes = 0;        // of an element's master weight
  std::uint64_t state_bytes = 0;         // of an element, in the optimizer
  std::uint64_t bucket_bytes = 0;        // of the largest bucket
  std::uint64_t converted_bytes = 0;     // of copies that autocast makes of parameters
  bool divides_gradients = false;        // by the loss scale of float16

  std::uint64_t optimizer_bytes() const { return state_bytes + master_bytes; }
  bool has_masters() const { return master_bytes > 0; }
};

/// A bucket ends before it becomes larger than its limit, but has one parameter at least.
std::uint64_t largest_bucket(const Sizes& sizes, const DataParallelOptions& options) {
  const std::uint64_t limit = std::max(options.first_bucket_bytes, options.bucket_bytes);
  return std::max(std::min(limit, sizes.value_bytes * sizes.trained),
                  sizes.value_bytes * sizes.largest);
}

Sizes sizes_of(const ModelSize& model, const PlanOptions& options) {
  Sizes sizes{.ranks = options.ranks,
              .trained = model.trained,
              .part = divided_up(model.trained, options.ranks),
              .largest = model.largest};
  const auto& precision = options.mixed_precision;
  if (precision.master_weights) {
    sizes.value_bytes = kSmall;
    sizes.master_bytes = kFloat32;
  } else if (precision.type != MixedPrecision::Type::Float32) {
    sizes.converted_bytes = kSmall * model.trained;
  }
  sizes.divides_gradients = precision.type == MixedPrecision::Type::Float16;
  sizes.state_bytes = static_cast<std::uint64_t>(options.optimizer_bytes);
  sizes.bucket_bytes = largest_bucket(sizes, options.data_parallel);
  return sizes;
}

/// Autograd makes each gradient in memory of its own, from where it is added to a bucket; it also
/// keeps what autocast has converted.
std::uint64_t passing_in_backward(const Sizes& sizes, int stage) {
  if (sizes.ranks == 1) return sizes.converted_bytes;
  if (stage < 2) return sizes.converted_bytes + sizes.value_bytes * sizes.largest;
  const auto room = sizes.bucket_bytes + divided_up(sizes.bucket_bytes, sizes.ranks);
  const auto buckets = stage == 3 ? kWaitingLonger + kGathered : kWaiting;
  return sizes.converted_bytes + buckets * sizes.bucket_bytes + room;
}

/// The copy of a rank's part from which an all-gather reads after an update.
std::uint64_t sent_after_update(const Sizes& sizes, int stage) {
  if (sizes.ranks == 1 || stage == 0 || stage == 3) return 0;  // with stage 3 values come when used
  return stage == 1 ? sizes.value_bytes * sizes.part : divided_up(sizes.bucket_bytes, sizes.ranks);
}

/// How many elements an update takes at once: a rank's part of all, or of one bucket after the
/// other.
std::uint64_t updated_at_once(const Sizes& sizes, int stage) {
  if (stage == 0) return sizes.trained;
  if (stage == 1 || sizes.ranks == 1) return sizes.part;
  return std::min(sizes.part, divided_up(sizes.bucket_bytes / sizes.value_bytes, sizes.ranks));
}

/// Copies in float32 of the gradients that an update takes; of all, where a loss scale divides
/// them.
std::uint64_t converted_gradients(const Sizes& sizes, int stage) {
  if (!sizes.has_masters()) return 0;
  const auto all = stage == 0 ? sizes.trained : sizes.part;
  return kFloat32 * (sizes.divides_gradients ? all : updated_at_once(sizes, stage));
}

std::uint64_t passing_in_step(const Sizes& sizes, int stage) {
  const auto temporaries =
      kTemporaries * kFloat32 * std::min(sizes.largest, updated_at_once(sizes, stage));
  return converted_gradients(sizes, stage) + temporaries + sent_after_update(sizes, stage);
}

MemoryUse on_device(const Sizes& sizes, const ZeroOptions& zero) {
  const auto whole = sizes.value_bytes * sizes.trained;
  const auto part = sizes.value_bytes * sizes.part;
  MemoryUse use;
  if (!zero.offload_parameters) use.parameters = zero.stage == 3 ? part : whole;
  if (zero.stage < 2)
    use.gradients = whole;
  else if (!zero.offload_optimizer)
    use.gradients = part;
  if (!zero.offload_optimizer)
    use.optimizer = sizes.optimizer_bytes() * (zero.stage == 0 ? sizes.trained : sizes.part);
  const auto in_step = zero.offload_optimizer
                           ? kStaged * sizes.bucket_bytes + sent_after_update(sizes, zero.stage)
                           : passing_in_step(sizes, zero.stage);
  use.passing = std::max(passing_in_backward(sizes, zero.stage), in_step);
  return use;
}

/// The CPU updates master weights, and without them a copy of the values, unless the values are in
/// main memory themselves.
MemoryUse in_main_memory(const Sizes& sizes, const ZeroOptions& zero) {
  if (!zero.offload_optimizer) return {};
  MemoryUse use;
  const auto part = sizes.value_bytes * sizes.part;
  if (zero.offload_parameters || !sizes.has_masters()) use.parameters = part;
  if (zero.stage >= 2) use.gradients = part;
  use.optimizer = sizes.optimizer_bytes() * sizes.part;
  const auto at_once = updated_at_once(sizes, zero.stage);
  const auto divided = sizes.divides_gradients && zero.stage == 1 ? part : 0;
  // Beside the gradients come the values of the device, which are compared with their copies.
  const auto copies =
      std::max({converted_gradients(sizes, zero.stage), divided, sizes.value_bytes * at_once});
  use.passing = copies + kTemporaries * kFloat32 * std::min(sizes.largest, at_once);
  return use;
}

bool fits(const PlannedStrategy& strategy, const PlanOptions& options) {
  const auto ranks_per_node = static_cast<std::uint64_t>(options.ranks_per_node);
  return options.activations <= options.device_memory &&
         strategy.device.total() <= options.device_memory - options.activations &&
         strategy.main.total() <= options.main_memory / ranks_per_node;
}

}  // namespace

// A transformer h wide has 12 h^2 parameters in a layer, 4 h^2 of them in the largest. That it has
// h / 128 layers is about what the family of GPT-3 has (Brown et al., NeurIPS 2020, table 2.1).
std::uint64_t largest_of_transformer(std::uint64_t trained) {
  const double width = std::cbrt(static_cast<double>(trained) * 128 / 12);
  return std::clamp<std::uint64_t>(std::llround(4 * width * width), 1, trained);
}

std::vector<ZeroOptions> strategies_for(const PlanOptions& options) {
  std::vector<ZeroOptions> strategies;
  const bool has_gpus = options.device == PlanOptions::Device::Gpu;
  if (options.ranks == 1) {
    strategies = {{.stage = 0}};
    if (has_gpus) strategies.push_back({.stage = 1, .offload_optimizer = true});
    return strategies;
  }
  for (int stage = 0; stage <= 3; ++stage) strategies.push_back({.stage = stage});
  if (!has_gpus) return strategies;
  strategies.push_back({.stage = 2, .offload_optimizer = true});
  strategies.push_back({.stage = 3, .offload_optimizer = true});
  strategies.push_back({.stage = 3, .offload_optimizer = true, .offload_parameters = true});
  return strategies;
}

PlannedStrategy predict(const ModelSize& model, const PlanOptions& options,
                        const ZeroOptions& zero) {
  const auto sizes = sizes_of(model, options);
  auto effective = zero;
  if (options.ranks == 1) {  // nothing is cut
    effective.stage = std::min(zero.stage, 1);
    effective.offload_parameters = false;
  }
  PlannedStrategy strategy{.zero = zero,
                           .device = on_device(sizes, effective),
                           .main = in_main_memory(sizes, effective)};
  strategy.device.parameters += model.other_bytes;
  strategy.fits = fits(strategy, options);
  return strategy;
}

std::vector<PlannedStrategy> predict_all(const ModelSize& model, const PlanOptions& options) {
  std::vector<PlannedStrategy> all;
  for (const auto& zero : strategies_for(options)) all.push_back(predict(model, options, zero));
  return all;
}

// Parameters are made in float32, and beside them come those of the smaller type.
std::uint64_t making_bytes(const ModelSize& model, const PlanOptions& options) {
  const auto smaller = options.mixed_precision.master_weights ? kSmall : 0;
  return (kFloat32 + smaller) * model.trained + model.other_bytes;
}

}  // namespace troupe::train
