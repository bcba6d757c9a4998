#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "output/append_file.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// What an MLflow server has taken of a run, as lines of `mlflow.jsonl` in the run's folder: the
/// ids of the experiment and of the runs there, and how far each is told.
class DeliveredFile {
 public:
  /// None: nothing is kept.
  DeliveredFile() = default;
  /// Continues the file. Lines of another server or of another experiment are left out. Throws
  /// std::runtime_error with the path and the cause.
  DeliveredFile(const std::filesystem::path& folder, const std::string& url,
                const std::string& experiment);

  /// Of earlier drivers.
  const std::vector<Json>& lines() const { return lines_; }
  void append(const Json& line);
  /// -> all is written.
  bool flush();

  /// To be appended once the server has taken all of a run that has ended.
  static Json all() { return {{"all", true}}; }
  /// Whether a driver told a server of the run in this folder, and not all of it.
  static bool is_behind(const std::filesystem::path& folder);

 private:
  std::vector<Json> lines_;
  bool is_kept_ = false;
  AppendFile file_;
};

}  // namespace troupe::tune
