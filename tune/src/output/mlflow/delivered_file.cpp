#include "output/mlflow/delivered_file.hpp"

#include <fstream>
#include <stdexcept>

namespace troupe::tune {
namespace {

constexpr auto* kFile = "mlflow.jsonl";

}  // namespace

DeliveredFile::DeliveredFile(const std::filesystem::path& folder, const std::string& url,
                             const std::string& experiment)
    : is_kept_{true} {
  const Json server{{"url", url}, {"experiment", experiment}};
  std::ifstream before(folder / kFile);
  bool is_this = false, is_cut = false;
  for (std::string text; std::getline(before, text);) {
    is_cut = before.eof();
    try {
      auto line = parse(text, "a line of mlflow.jsonl");
      if (line.contains("url")) {
        is_this = line == server;
      } else if (is_this && line != all()) {
        lines_.push_back(std::move(line));
      }
    } catch (const std::invalid_argument&) {
      // The line that was in flight when a driver died.
    }
  }
  file_ = AppendFile(folder / kFile);
  file_.append((is_cut ? "\n" : "") + dump(server) + "\n");
}

void DeliveredFile::append(const Json& line) {
  if (is_kept_) file_.append(dump(line) + "\n");
}

/// A driver begins with a line about its server: the line about all of the run is then no more the
/// last.
bool DeliveredFile::is_behind(const std::filesystem::path& folder) {
  std::ifstream file(folder / kFile);
  std::string last;
  for (std::string text; std::getline(file, text);) last = text;
  return !last.empty() && last != dump(all());
}

bool DeliveredFile::flush() { return !is_kept_ || file_.flush(); }

}  // namespace troupe::tune
