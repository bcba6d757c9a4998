#include "plan/checks.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::train {
namespace {

// A rank needs less than 200 bytes for each element, which is less than 2^61 with these.
constexpr std::uint64_t kMostElements = 10'000'000'000'000'000;
constexpr std::uint64_t kMostBytes = 1'000'000'000'000'000'000;
constexpr int kMostOptimizerBytes = 64;

void check_bytes(const char* name, std::uint64_t bytes) {
  if (bytes <= kMostBytes) return;
  throw std::invalid_argument(fmt::format(
      "{} is {}, and a plan is for {} bytes at most: give a number of bytes, which is not negative",
      name, bytes, kMostBytes));
}

void check_model(const ModelSize& model) {
  if (model.trained == 0) {
    throw std::invalid_argument(
        "the model has no trained parameter, so no step would change it: give ModelSize::trained, "
        "or set requires_grad on the parameters that are to be trained");
  }
  if (model.trained > kMostElements) {
    throw std::invalid_argument(
        fmt::format("ModelSize::trained is {}, and a plan is for {} elements at most: give it as "
                    "the number of elements, not of bytes or bits",
                    model.trained, kMostElements));
  }
  if (model.largest > model.trained) {
    throw std::invalid_argument(
        fmt::format("ModelSize::largest is {}, which is more than the {} of ModelSize::trained, "
                    "and the largest parameter is one of the trained ones: give the elements of "
                    "that parameter, or 0 where they are not known",
                    model.largest, model.trained));
  }
  check_bytes("ModelSize::other_bytes", model.other_bytes);
}

}  // namespace

void check_plan(const ModelSize& model, const PlanOptions& options) {
  check_model(model);
  if (options.ranks < 1) {
    throw std::invalid_argument(fmt::format(
        "PlanOptions::ranks is {}, and a run has one rank at least: give RunOptions::workers of "
        "the run that is planned",
        options.ranks));
  }
  if (options.ranks_per_node < 0) {
    throw std::invalid_argument(fmt::format(
        "PlanOptions::ranks_per_node is {}, and a node has one rank at least: give how many ranks "
        "share the main memory of a node, or 0 where all do",
        options.ranks_per_node));
  }
  check_bytes("PlanOptions::device_memory", options.device_memory);
  check_bytes("PlanOptions::main_memory", options.main_memory);
  check_bytes("PlanOptions::activations", options.activations);
  if (options.optimizer_bytes < 0 || options.optimizer_bytes > kMostOptimizerBytes) {
    throw std::invalid_argument(fmt::format(
        "PlanOptions::optimizer_bytes is {}, and can be 0 to {}: give the bytes that the optimizer "
        "keeps for one element, which are 8 for Adam",
        options.optimizer_bytes, kMostOptimizerBytes));
  }
  const auto& precision = options.mixed_precision;
  if (precision.master_weights && precision.type == MixedPrecision::Type::Float32) {
    throw std::invalid_argument(
        "PlanOptions::mixed_precision.master_weights is set, and its type is Float32, in which the "
        "parameters are their own master copy: set .type to BFloat16 or Float16 too, or leave "
        "master_weights out");
  }
}

}  // namespace troupe::train
