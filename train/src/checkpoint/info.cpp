#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>

#include "checkpoint/directory.hpp"
#include "checkpoint/state.hpp"

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
  std::ofstream out(file);
  out << nlohmann::json{{"format", kFormat},
                        {"epoch", info.epoch},
                        {"models", info.models},
                        {"optimizers", info.optimizers},
                        {"world_size", info.world_size}}
             .dump(2)
      << '\n';
  if (!out.flush()) fail(file, "cannot be written");
}

CheckpointInfo read_info(const fs::path& file) {
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!json.is_object()) fail(file, "is no checkpoint of a training run: it holds no JSON object");
  if (const int format = json.value("format", 0); format != kFormat) {
    fail(file, fmt::format("is a checkpoint of format {}; this program reads format {}", format,
                           kFormat));
  }
  return {.epoch = json.value("epoch", -1),
          .models = json.value("models", 0),
          .optimizers = json.value("optimizers", 0),
          .world_size = json.value("world_size", 1)};
}

std::string read_file(const fs::path& file) {
  std::error_code ignored;
  const auto folder = file.parent_path();
  if (fs::status(folder, ignored).type() == fs::file_type::not_found) {
    const auto latest = latest_checkpoint(folder.parent_path());
    fail(folder, fmt::format("there is no such checkpoint on the node of rank 0{}",
                             latest.empty() ? "" : "; the latest there is " + latest.string()));
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (in.peek() == std::ifstream::traits_type::eof() && in.eof() && !in.bad() && errno == 0)
    fail(file, "is empty: the checkpoint was damaged after it was written");
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text)
    fail(file, fmt::format("cannot be read ({}). Is {} the directory of a checkpoint?",
                           std::strerror(errno), folder.string()));
  return std::move(text).str();
}

}  // namespace troupe::train
