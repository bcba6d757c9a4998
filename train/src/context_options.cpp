#include "context_options.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include <troupe/detail/codec.hpp>

namespace troupe::train {
namespace {

constexpr const char* kType = "train::ContextOptions";
constexpr const char* kTypeInRun = "train::RunOptions::context";

}  // namespace

ContextOptions::operator ContextSettings() const {
  return {.type = kType, .bytes = troupe::detail::encode(*this).bytes};
}

ContextSettings settings_of_run(const ContextOptions& options) {
  ContextSettings settings = options;
  settings.type = kTypeInRun;
  return settings;
}

bool are_of_run(const ContextSettings& settings) { return settings.type == kTypeInRun; }

ContextOptions options_from(const ContextSettings& settings) {
  if (settings.type.empty()) return {};
  if (settings.type != kType && !are_of_run(settings)) {
    throw std::invalid_argument(
        fmt::format("the run was given a {} for its contexts, and a train::Context is made with a "
                    "{}: give it that, or nothing",
                    settings.type, kType));
  }
  troupe::detail::Payload payload;
  payload.bytes = settings.bytes;
  return troupe::detail::decode<ContextOptions>(payload);
}

}  // namespace troupe::train
