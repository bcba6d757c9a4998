#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "config/name.hpp"
#include "deepspeed/blocks.hpp"
#include "precision/loss_scaler.hpp"

namespace troupe::train::deepspeed {
namespace {

constexpr int kHighestPower = 126;  // of a loss scale

LossScaleOptions read_loss_scale(Block& block) {
  LossScaleOptions scale;
  scale.fixed = block.number("loss_scale").value_or(scale.fixed);
  if (const auto power = block.integer("initial_scale_power", 0, kHighestPower))
    scale.initial = std::ldexp(1.0, static_cast<int>(*power));
  scale.window = block.integer("loss_scale_window", 0).value_or(scale.window);
  scale.hysteresis = static_cast<int>(
      block.integer("hysteresis", 0, std::numeric_limits<int>::max()).value_or(scale.hysteresis));
  scale.consecutive_hysteresis =
      block.flag("consecutive_hysteresis").value_or(scale.consecutive_hysteresis);
  scale.smallest = block.number("min_loss_scale").value_or(scale.smallest);
  // A scale that does not change has none of the others.
  return scale.fixed == 0 ? scale : LossScaleOptions{.fixed = scale.fixed};
}

void check_loss_scale(Block& block, const LossScaleOptions& scale) {
  try {
    const LossScaler can_be(scale);
  } catch (const std::invalid_argument& error) {
    block.refuse("fp16", fmt::format("has a loss scale that cannot be: {}", error.what()));
  }
}

MixedPrecision::Type dtype_of(const Block& block, const std::string& name) {
  for (const char* half : {"float16", "fp16", "half", "torch.float16", "torch.half"}) {
    if (name == half) return MixedPrecision::Type::Float16;
  }
  for (const char* brain : {"bfloat16", "bf16", "torch.bfloat16"}) {
    if (name == brain) return MixedPrecision::Type::BFloat16;
  }
  block.refuse("dtype", fmt::format("is \"{}\": expected \"bfloat16\" or \"float16\"",
                                    config::printable(name)));
}

}  // namespace

void read_precision(Block& whole, Config& config) {
  constexpr std::string_view kLeave = ": leave it away";
  std::vector<std::string> enabled;
  const auto enable = [&](Block& block, const char* name, MixedPrecision precision) {
    if (!block.flag("enabled").value_or(false)) return;
    enabled.emplace_back(name);
    config.mixed_precision = precision;
  };
  LossScaleOptions loss_scale;
  if (auto block = whole.block("fp16")) {
    loss_scale = read_loss_scale(*block);
    enable(
        *block, "fp16",
        {.type = MixedPrecision::Type::Float16, .loss_scale = loss_scale, .master_weights = true});
    block->have_no_effect({{"auto_cast"}});
    block->are_off({{"fp16_master_weights_and_grads"}}, kLeave);
    block->finish();
  }
  for (const char* name : {"bf16", "bfloat16"}) {
    auto block = whole.block(name);
    if (!block) continue;
    enable(*block, name, {.type = MixedPrecision::Type::BFloat16, .master_weights = true});
    block->have_no_effect({{"immediate_grad_update"}});
    block->are_off({{"bf16_master_weights_and_grads", "bf16_optimizer_states"}}, kLeave);
    block->are_off({{"check_overflow", "check_grad_overflow"}},
                   ": it leaves no step in bfloat16 out; write false");
    block->finish();
  }
  if (auto block = whole.block("torch_autocast")) {
    const bool is_enabled = block->flag("enabled").value_or(false);
    const auto name = block->text("dtype").value_or("bfloat16");  // any one where it is off
    if (is_enabled)
      enable(*block, "torch_autocast", {.type = dtype_of(*block, name), .loss_scale = loss_scale});
    block->have_no_effect({{"lower_precision_safe_modules"}});
    block->finish();
  }
  if (enabled.size() > 1)
    whole.refuse(enabled[1], fmt::format("is enabled, and '{}' too: enable one", enabled[0]));
  if (config.mixed_precision.type == MixedPrecision::Type::Float16)
    check_loss_scale(whole, loss_scale);
}

}  // namespace troupe::train::deepspeed
