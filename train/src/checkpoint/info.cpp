#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>

#include "checkpoint/directory.hpp"
#include "checkpoint/state.hpp"
#include "os/files/file_content.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

constexpr int kFormat = 1;

[[noreturn]] void fail(const fs::path& file, const std::string& reason) {
  throw Error(Failure{.kind = Failure::Kind::Unknown,
                      .message = fmt::format("{}: {}", file.string(), reason)});
}

}  // namespace

void write_info(const CheckpointInfo& info, const fs::path& file) {
  nlohmann::json json{{"format", kFormat},
                      {"epoch", info.epoch},
                      {"models", info.models},
                      {"optimizers", info.optimizers},
                      {"world_size", info.world_size}};
  if (info.loss_scale) {
    const auto& [scale, steps, last_overflow, patience] = *info.loss_scale;
    json["loss_scale"] = {{"scale", scale},
                          {"steps", steps},
                          {"last_overflow", last_overflow},
                          {"patience", patience}};
  }
  std::ofstream out(file);
  out << json.dump(2) << '\n';
  if (!out.flush()) fail(file, "cannot be written");
}

CheckpointInfo read_info(const fs::path& file) {
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!json.is_object()) fail(file, "is no checkpoint of a training run: it holds no JSON object");
  if (const int format = json.value("format", 0); format != kFormat) {
    fail(file, fmt::format("is a checkpoint of format {}; this program reads format {}", format,
                           kFormat));
  }
  std::optional<LossScaleState> loss_scale;
  if (const auto found = json.find("loss_scale"); found != json.end() && found->is_object()) {
    loss_scale = {.scale = found->value("scale", 0.0),
                  .steps = found->value("steps", std::int64_t{0}),
                  .last_overflow = found->value("last_overflow", std::int64_t{-1}),
                  .patience = found->value("patience", 0)};
    if (!(loss_scale->scale > 0) || loss_scale->patience < 1)
      fail(file, "has a loss scale that cannot be: it was damaged after it was written");
  }
  return {.epoch = json.value("epoch", -1),
          .models = json.value("models", 0),
          .optimizers = json.value("optimizers", 0),
          .world_size = json.value("world_size", 1),
          .loss_scale = loss_scale};
}

std::string read_file(const fs::path& file) {
  std::error_code ignored;
  const auto folder = file.parent_path();
  if (fs::status(folder, ignored).type() == fs::file_type::not_found) {
    const auto latest = latest_checkpoint(folder.parent_path());
    fail(folder, fmt::format("there is no such checkpoint on the node of rank 0{}",
                             latest.empty() ? "" : "; the latest there is " + latest.string()));
  }
  auto content = os::read_file(file);
  if (!content.why_not.empty())
    fail(file, fmt::format("cannot be read ({}). Is {} the directory of a checkpoint?",
                           content.why_not, folder.string()));
  if (content.bytes.empty())
    fail(file, "is empty: the checkpoint was damaged after it was written");
  return std::move(content.bytes);
}

}  // namespace troupe::train
