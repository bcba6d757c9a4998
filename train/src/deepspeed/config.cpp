#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <troupe/train/deepspeed.hpp>

#include "config/name.hpp"
#include "deepspeed/block.hpp"
#include "deepspeed/blocks.hpp"
#include "deepspeed/keys.hpp"
#include "precision/loss_scaler.hpp"

namespace troupe::train::deepspeed {
namespace {

using nlohmann::json;

constexpr int kHighestPower = 126;  // of a loss scale
constexpr std::string_view kSwitchOff = ": leave it away, or switch it off";

/// Throws std::invalid_argument for a key that stands twice in an object, of which the last one would
/// win in silence.
json parsed(std::string_view text, const std::string& name) {
  if (text.find('\0') != text.npos)  // where the parser would end
    throw std::invalid_argument(fmt::format("{}: this is no JSON: it has a NUL byte", name));
  std::vector<std::set<std::string>> keys;
  const auto look = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        throw std::invalid_argument(fmt::format(
            "{}: the key '{}' stands twice in one object; keep one", name, config::printable(key)));
    }
    return true;
  };
  try {
    return json::parse(text, look, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const json::exception& error) {
    throw std::invalid_argument(
        fmt::format("{}: this is no JSON: {}", name, config::printable(error.what())));
  }
}

/// -> 0 for a product that std::int64_t does not have.
std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t found = 0;
  if (__builtin_mul_overflow(a, b, &found) || __builtin_mul_overflow(found, c, &found)) return 0;
  return found;
}

void read_zero(Block& block, Config& config) {
  config.zero_optimization.stage = static_cast<int>(block.integer("stage", 0, 3).value_or(0));
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
  block.are_off(kOffload, "device", kSwitchOff);
  block.finish();
}

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

MixedPrecision::Type dtype_of(Block& block) {
  const auto name = block.text("dtype").value_or("bfloat16");
  for (const char* half : {"float16", "fp16", "half", "torch.float16", "torch.half"}) {
    if (name == half) return MixedPrecision::Type::Float16;
  }
  for (const char* brain : {"bfloat16", "bf16", "torch.bfloat16"}) {
    if (name == brain) return MixedPrecision::Type::BFloat16;
  }
  block.refuse("dtype", fmt::format("is \"{}\": expected \"bfloat16\" or \"float16\"",
                                    config::printable(name)));
}

/// `fp16`, `bf16` and `torch_autocast`, of which one may be enabled.
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
    enable(*block, "torch_autocast", {.type = dtype_of(*block), .loss_scale = loss_scale});
    block->have_no_effect({{"lower_precision_safe_modules"}});
    block->finish();
  }
  if (enabled.size() > 1)
    whole.refuse(enabled[1], fmt::format("is enabled, and '{}' too: enable one", enabled[0]));
  if (config.mixed_precision.type == MixedPrecision::Type::Float16)
    check_loss_scale(whole, loss_scale);
}

}  // namespace

Config parse(std::string_view text, const std::string& name) {
  const auto document = parsed(text, name);
  if (!document.is_object())
    throw std::invalid_argument(fmt::format("{}: expected an object, {{...}}", name));
  Reading reading{.name = name, .without_effect = {}};
  Block block(document, "", reading);
  Config config;
  config.train_batch_size = block.integer("train_batch_size", 1);
  config.train_micro_batch_size_per_gpu = block.integer("train_micro_batch_size_per_gpu", 1);
  config.gradient_accumulation_steps = block.integer("gradient_accumulation_steps", 1);
  if (auto given = block.block("optimizer")) config.optimizer = read_optimizer(*given);
  if (auto given = block.block("scheduler")) config.scheduler = read_schedule(*given);
  config.gradient_clipping = block.number("gradient_clipping").value_or(config.gradient_clipping);
  if (config.gradient_clipping < 0)
    block.refuse("gradient_clipping",
                 fmt::format("is {}: expected 0 or more", config.gradient_clipping));
  if (auto given = block.block("zero_optimization")) read_zero(*given, config);
  read_precision(block, config);
  if (!block.flag("managed_gradient_accumulation").value_or(true))
    block.refuse("managed_gradient_accumulation",
                 "is false: expected true, since step() counts the micro-batches");
  if (const auto op = block.text("gradient_allreduce_op"); lower(op.value_or("mean")) != "mean")
    block.refuse("gradient_allreduce_op",
                 fmt::format("is \"{}\": expected \"mean\"", config::printable(*op)));
  for (const char* size : {"sequence_parallel_size", "data_parallel_size"}) {
    if (const auto ranks = block.integer(size); ranks.value_or(1) > 1)
      block.refuse(size, fmt::format("is {}: expected 1, or nothing", *ranks));
  }
  block.have_no_effect(kWithoutEffect);
  block.are_off(kOff, kSwitchOff);
  block.are_off(kNotEnabled, "enabled", kSwitchOff);
  block.finish();
  config.without_effect = std::move(reading.without_effect);
  std::ranges::sort(config.without_effect);
  return config;
}

Config read(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.is_open() || errno != 0)
    throw std::invalid_argument(fmt::format(
        "the DeepSpeed configuration {} cannot be read ({}): give the path of a JSON file",
        config::printable(file.string()), std::strerror(errno)));
  return parse(std::move(text).str(), file.filename().string());
}

BatchSizes Config::batch_sizes(int ranks) const {
  const auto& train = train_batch_size;
  const auto& micro = train_micro_batch_size_per_gpu;
  const auto& accumulation = gradient_accumulation_steps;
  if (!train && !micro) {
    throw std::invalid_argument(
        "the DeepSpeed configuration has neither train_batch_size nor "
        "train_micro_batch_size_per_gpu: give one of them");
  }
  const auto can_be = [](const auto& value) { return !value || *value >= 1; };
  BatchSizes sizes;
  if (can_be(train) && can_be(micro) && can_be(accumulation) && ranks >= 1) {
    sizes.accumulation = accumulation     ? *accumulation
                         : train && micro ? *train / *micro / ranks
                                          : 1;
    sizes.micro = micro ? *micro : *train / sizes.accumulation / ranks;
    sizes.train = train.value_or(product(sizes.micro, sizes.accumulation, ranks));
  }
  if (sizes.train < 1 || product(sizes.micro, sizes.accumulation, ranks) != sizes.train) {
    const auto given = [](const auto& value) {
      return value ? fmt::to_string(*value) : std::string("not given");
    };
    throw std::invalid_argument(
        fmt::format("train_batch_size ({}) is not train_micro_batch_size_per_gpu ({}) x "
                    "gradient_accumulation_steps ({}) x {} rank{}: give two of the three, so that "
                    "the third one "
                    "is a whole number",
                    given(train), given(micro), given(accumulation), ranks, ranks == 1 ? "" : "s"));
  }
  return sizes;
}

ContextOptions Config::context(ContextOptions given) const {
  given.zero = zero_optimization;
  given.mixed_precision = mixed_precision;
  given.data_parallel.find_unused_parameters |= ignore_unused_parameters;
  return given;
}

}  // namespace troupe::train::deepspeed
