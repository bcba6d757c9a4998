#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <troupe/train/deepspeed.hpp>

#include "config/name.hpp"
#include "deepspeed/block.hpp"
#include "deepspeed/blocks.hpp"
#include "deepspeed/keys.hpp"
#include "json/document.hpp"
#include "os/files/file_content.hpp"

namespace troupe::train::deepspeed {
namespace {

/// -> 0 for a product that std::int64_t does not have.
std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t found = 0;
  if (__builtin_mul_overflow(a, b, &found) || __builtin_mul_overflow(found, c, &found)) return 0;
  return found;
}

}  // namespace

Config parse(std::string_view text, const std::string& name) {
  const auto document = parse_document(text, name, Comments::Allowed);
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
  if (const auto op = block.text("gradient_allreduce_op"); op && !is_same_word(*op, "mean"))
    block.refuse("gradient_allreduce_op",
                 fmt::format("is \"{}\": expected \"mean\"", config::printable(*op)));
  for (const char* size : {"sequence_parallel_size", "data_parallel_size"}) {
    if (const auto ranks = block.integer(size); ranks.value_or(1) > 1)
      block.refuse(size, fmt::format("is {}: expected 1, or nothing", *ranks));
  }
  block.have_no_effect(kWithoutEffect);
  block.are_off(kOff, kSwitchOff);
  block.finish();
  config.without_effect = std::move(reading.without_effect);
  std::ranges::sort(config.without_effect);
  return config;
}

Config read(const std::filesystem::path& file) {
  const auto [text, why_not] = os::read_file(file);
  if (!why_not.empty())
    throw std::invalid_argument(fmt::format(
        "the DeepSpeed configuration {} cannot be read ({}): give the path of a JSON file",
        config::printable(file.string()), why_not));
  return parse(text, file.filename().string());
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
