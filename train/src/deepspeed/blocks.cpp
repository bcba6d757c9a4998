#include "deepspeed/blocks.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/name.hpp"
#include "config/nearest.hpp"
#include "deepspeed/keys.hpp"

namespace troupe::train::deepspeed {
namespace {

constexpr double kDecayOfTorch = 0.01;  // of torch.optim.AdamW

void check_at_least_0(Block& params, const char* key, double value) {
  if (!(value >= 0)) params.refuse(key, fmt::format("is {}: expected 0 or more", value));
}

std::array<double, 2> read_betas(Block& params, std::array<double, 2> usual) {
  const auto* given = params.value("betas");
  if (given == nullptr) return usual;
  const bool is_pair = given->is_array() && given->size() == 2 && given->front().is_number() &&
                       given->back().is_number();
  if (is_pair) {
    usual = {given->front().get<double>(), given->back().get<double>()};
    if (usual[0] >= 0 && usual[0] < 1 && usual[1] >= 0 && usual[1] < 1) return usual;
  }
  params.refuse("betas", "has to be two numbers, each 0 or more and less than 1");
}

void read_adam(Block& params, OptimizerOptions& options) {
  // DeepSpeed's Adam decays weights as AdamW does, unless it is told otherwise.
  const bool as_adam_w = params.flag("adam_w_mode").value_or(true);
  if (as_adam_w) options.type = OptimizerOptions::Type::AdamW;
  const bool of_torch = params.flag("torch_adam").value_or(false);
  if (of_torch && options.type == OptimizerOptions::Type::AdamW)
    options.weight_decay = kDecayOfTorch;
  options.betas = read_betas(params, options.betas);
  options.eps = params.number("eps").value_or(options.eps);
  check_at_least_0(params, "eps", options.eps);
  if (!params.flag("bias_correction").value_or(true))
    params.refuse("bias_correction", "is false: expected true, as LibTorch's Adam always corrects");
  params.have_no_effect({{"foreach", "fused", "fp32_optimizer_states", "set_grad_none"}});
  params.are_off({{"amsgrad", "maximize", "capturable", "differentiable"}}, ": leave it away");
}

void read_sgd(Block& params, OptimizerOptions& options) {
  options.momentum = params.number("momentum").value_or(options.momentum);
  check_at_least_0(params, "momentum", options.momentum);
  options.dampening = params.number("dampening").value_or(options.dampening);
  options.nesterov = params.flag("nesterov").value_or(options.nesterov);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0))
    params.refuse("nesterov", "is true: it needs a momentum above 0, and no dampening");
  params.have_no_effect({{"foreach", "fused"}});
  params.are_off({{"maximize", "differentiable"}}, ": leave it away");
}

WarmupType read_warmup_type(Block& params) {
  const auto type = params.text("warmup_type").value_or("log");
  if (type != "log" && type != "linear")
    params.refuse("warmup_type", fmt::format("is \"{}\": expected \"log\" or \"linear\"",
                                             config::printable(type)));
  return type == "log" ? WarmupType::Log : WarmupType::Linear;
}

template <class T, class Found>
void set(T& field, const Found& found) {
  if (found) field = *found;
}

WarmupLR read_warmup(Block& params) {
  WarmupLR schedule;
  set(schedule.warmup_min_lr, params.number("warmup_min_lr"));
  set(schedule.warmup_max_lr, params.number("warmup_max_lr"));
  set(schedule.warmup_num_steps, params.integer("warmup_num_steps"));
  schedule.warmup_type = read_warmup_type(params);
  return schedule;
}

WarmupDecayLR read_warmup_decay(Block& params) {
  WarmupDecayLR schedule;
  set(schedule.total_num_steps, params.integer("total_num_steps"));
  set(schedule.warmup_min_lr, params.number("warmup_min_lr"));
  set(schedule.warmup_max_lr, params.number("warmup_max_lr"));
  set(schedule.warmup_num_steps, params.integer("warmup_num_steps"));
  schedule.warmup_type = read_warmup_type(params);
  return schedule;
}

WarmupCosineLR read_warmup_cosine(Block& params) {
  WarmupCosineLR schedule;
  set(schedule.total_num_steps, params.integer("total_num_steps"));
  set(schedule.warmup_min_ratio, params.number("warmup_min_ratio"));
  set(schedule.warmup_num_steps, params.integer("warmup_num_steps"));
  set(schedule.cos_min_ratio, params.number("cos_min_ratio"));
  schedule.warmup_type = read_warmup_type(params);
  return schedule;
}

OneCycle read_one_cycle(Block& params) {
  OneCycle schedule;
  for (const char* needed : {"cycle_min_lr", "cycle_max_lr"}) {
    if (!params.number(needed)) params.refuse(needed, "has to be given");
  }
  set(schedule.cycle_min_lr, params.number("cycle_min_lr"));
  set(schedule.cycle_max_lr, params.number("cycle_max_lr"));
  set(schedule.decay_lr_rate, params.number("decay_lr_rate"));
  set(schedule.cycle_first_step_size, params.integer("cycle_first_step_size"));
  set(schedule.cycle_second_step_size, params.integer("cycle_second_step_size"));
  set(schedule.cycle_first_stair_count, params.integer("cycle_first_stair_count"));
  set(schedule.cycle_second_stair_count, params.integer("cycle_second_stair_count"));
  set(schedule.decay_step_size, params.integer("decay_step_size"));
  set(schedule.cycle_momentum, params.flag("cycle_momentum"));
  set(schedule.cycle_min_mom, params.number("cycle_min_mom"));
  set(schedule.cycle_max_mom, params.number("cycle_max_mom"));
  set(schedule.decay_mom_rate, params.number("decay_mom_rate"));
  return schedule;
}

LRRangeTest read_range_test(Block& params) {
  LRRangeTest schedule;
  set(schedule.lr_range_test_min_lr, params.number("lr_range_test_min_lr"));
  set(schedule.lr_range_test_step_size, params.integer("lr_range_test_step_size"));
  set(schedule.lr_range_test_step_rate, params.number("lr_range_test_step_rate"));
  set(schedule.lr_range_test_staircase, params.flag("lr_range_test_staircase"));
  return schedule;
}

[[noreturn]] void refuse_type(Block& block, const std::string& type,
                              const std::vector<std::string>& known) {
  block.refuse("type", fmt::format("is \"{}\": expected one of {}{}", config::printable(type),
                                   fmt::join(known, ", "), config::nearest_in_words(type, known)));
}

/// The type of a block all of whose keys were asked for. Where there is no type, a misspelt key is
/// what is wrong.
std::string type_in(const Block& block, const std::optional<std::string>& type) {
  block.finish();
  if (!type) block.refuse("type", "has to be given");
  return *type;
}

/// Whether a block of `zero_optimization` offloads to main memory. `older`: the flag that DeepSpeed
/// had before the block.
bool read_offload(Block& zero, const char* key, const char* older) {
  const bool is_flagged = zero.flag(older).value_or(false);
  auto block = zero.block_or_empty(key);
  const auto device = block.text("device").value_or("none");
  if (device == "nvme")
    block.refuse("device", "is \"nvme\": Troupe offloads to main memory; write \"cpu\"");
  if (device != "cpu" && device != "none") {
    block.refuse("device",
                 fmt::format("is \"{}\": expected \"cpu\" or \"none\"", config::printable(device)));
  }
  if (const auto ratio = block.number("ratio"); ratio.value_or(1) != 1)
    block.refuse("ratio", fmt::format("is {}: Troupe offloads all of it; write 1", *ratio));
  block.are_off({{"super_offload"}}, kSwitchOff);
  block.have_no_effect(kOffloadWithoutEffect);
  block.finish();
  return is_flagged || device == "cpu";
}

}  // namespace

OptimizerOptions read_optimizer(Block& block) {
  const auto given = block.text("type");
  auto params = block.block_or_empty("params");
  block.have_no_effect({{"legacy_fusion"}});
  const auto type = type_in(block, given);
  OptimizerOptions options;
  const bool is_sgd = is_same_word(type, "SGD");
  if (is_same_word(type, "AdamW"))
    options.type = OptimizerOptions::Type::AdamW;
  else if (is_sgd)
    options.type = OptimizerOptions::Type::SGD;
  else if (!is_same_word(type, "Adam"))
    refuse_type(block, type, {"Adam", "AdamW", "SGD"});
  if (params.value("max_grad_norm") != nullptr)
    params.refuse("max_grad_norm", "is no parameter of an optimizer: write gradient_clipping");
  if (is_sgd)
    read_sgd(params, options);
  else
    read_adam(params, options);
  set(options.lr, params.number("lr"));
  check_at_least_0(params, "lr", options.lr);
  set(options.weight_decay, params.number("weight_decay"));
  check_at_least_0(params, "weight_decay", options.weight_decay);
  params.finish();
  return options;
}

Schedule read_schedule(Block& block) {
  static const std::vector<std::string> kTypes{"WarmupLR", "WarmupDecayLR", "WarmupCosineLR",
                                               "OneCycle", "LRRangeTest"};
  const auto given = block.text("type");
  auto params = block.block_or_empty("params");
  const auto type = type_in(block, given);
  if (std::ranges::find(kTypes, type) == kTypes.end()) refuse_type(block, type, kTypes);
  const auto read = [&]() -> Schedule {
    if (type == "WarmupLR") return read_warmup(params);
    if (type == "WarmupDecayLR") return read_warmup_decay(params);
    if (type == "WarmupCosineLR") return read_warmup_cosine(params);
    if (type == "OneCycle") return read_one_cycle(params);
    return read_range_test(params);
  };
  auto schedule = read();
  if (params.integer("last_batch_iteration").value_or(-1) != -1)
    params.refuse("last_batch_iteration",
                  "has to be -1: a run that continues has its steps from its checkpoint");
  params.finish();
  try {
    check_schedule(schedule);
  } catch (const std::invalid_argument& error) {
    block.refuse("params", fmt::format("cannot be: {}", error.what()));
  }
  return schedule;
}

void read_zero(Block& block, Config& config) {
  auto& zero = config.zero_optimization;
  zero.stage = static_cast<int>(block.integer("stage", 0, 3).value_or(0));
  zero.offload_optimizer = read_offload(block, "offload_optimizer", "cpu_offload");
  zero.offload_parameters = read_offload(block, "offload_param", "cpu_offload_param");
  if (zero.offload_optimizer && zero.stage == 0)
    block.refuse("offload_optimizer", "is on, and the stage is 0: expected a stage of 1, 2 or 3");
  if (zero.offload_parameters && !(zero.offload_optimizer && zero.stage == 3)) {
    block.refuse("offload_param",
                 "is on: expected it with stage 3, and with offload_optimizer on too");
  }
  config.ignore_unused_parameters = block.flag("ignore_unused_parameters").value_or(false);
  if (const auto size = block.integer("zero_hpz_partition_size"); size.value_or(1) > 1)
    block.refuse(
        "zero_hpz_partition_size",
        fmt::format("is {}, and Troupe does not have this: give 1, or leave it away", *size));
  if (const auto size = block.integer("mics_shard_size"); size.value_or(-1) > 0)
    block.refuse("mics_shard_size",
                 fmt::format("is {}, and Troupe does not have this: leave it away", *size));
  block.have_no_effect(kZeroWithoutEffect);
  block.are_off(kZeroOff, kSwitchOff);
  block.finish();
}

}  // namespace troupe::train::deepspeed
