#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/results.hpp>

#include "output/append_file.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// `params.json` in a run's folder: the search as it is now, for people, and what its trials were given
/// of the fields that are not searched. A value.
///
///   space             each searched field, and its domain
///   config            each field that is not searched, for the attempts that begin from now on
///   earlier_configs   [{"attempts": [1, 2], "config": {"epochs": 3}}, ...], one for each time that the
///                     run was gone on with, with another `.config`: how many attempts each trial had
///                     made by then, and what the fields had that were changed
class RunParams {
 public:
  /// `search`: an object with the journal's header, the space, and how the search runs.
  RunParams(Json search, const Configuration& unsearched);
  /// Without anything where the folder has none, or what it has cannot be read.
  static RunParams in(const std::filesystem::path& folder);
  /// Throws std::runtime_error with the path and the cause.
  void write(const std::filesystem::path& folder, Sync sync = Sync::No) const;

  Json space() const;
  /// Without what no field can hold.
  Configuration unsearched() const;
  std::vector<detail::EarlierConfig> earlier_configs() const;

  /// Takes what the attempts until now were given from the run's params of that time. -> a line for each
  /// field that had another value in them.
  std::vector<std::string> go_on_from(const RunParams& before, const std::vector<Trial>& trials);

 private:
  explicit RunParams(Json json) : json_(std::move(json)) {}

  Json json_;
};

}  // namespace troupe::tune
