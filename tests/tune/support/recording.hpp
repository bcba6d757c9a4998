#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiment/journal.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"

namespace troupe::tune {

/// The journal of a search in virtual time, and the states that it went through.
struct Recording {
  std::string journal;
  std::vector<std::size_t> ends;    ///< of the lines in the journal
  std::vector<std::string> states;  ///< after each line
};

/// Drives the search to its end. `also` sees each event before it is recorded.
inline Recording record(Experiment& experiment, FakeLauncher::Script script,
                        Experiment::Observer also = {}) {
  Recording recording;
  const auto add = [&](const std::string& line) {
    recording.journal += line + "\n";
    recording.ends.push_back(recording.journal.size());
    recording.states.push_back(experiment.save());
  };
  std::uint64_t events = 0;
  add(numbered_line(journal_header(experiment), 0));
  experiment.observe([&](const Event& event, const Trial* trial) {
    if (also) also(event, trial);
    add(numbered_line(to_line(event), ++events));
  });
  FakeLauncher cluster(std::move(script));
  drive(experiment, cluster, {}, {});
  return recording;
}

/// What each trial came to, without the times.
inline std::string fate(const Experiment& experiment) {
  std::string text;
  for (const auto& trial : experiment.trials()) {
    auto json = to_json(trial);
    json.erase("started");
    json.erase("ended");
    text += dump(json) + "\n";
  }
  return text + experiment.scheduler().save();
}

}  // namespace troupe::tune
