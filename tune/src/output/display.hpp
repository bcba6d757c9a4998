#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "output/render.hpp"

namespace troupe::tune {

/// Shows a run on a file descriptor while it goes on: a table drawn in place on a terminal,
/// elsewhere a line for each trial that started or ended. What worker processes print on the same
/// terminal goes above the table. Owned by the run, used by its thread.
/// What cannot be written is dropped: nobody reads it.
class Display {
 public:
  enum class Kind : unsigned char { Table, Lines, None };

  Display(Kind kind, int fd, bool colour) : kind_{kind}, fd_{fd}, colour_{colour} {}
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;
  /// A table if the descriptor is a terminal that can move its cursor, else lines; colour unless
  /// NO_COLOR is set.
  static Display for_descriptor(int fd);

  /// Of each trial's gang; 1 unless said.
  void set_ranks(int ranks) { ranks_ = ranks; }
  /// Called for each drawing of the table: what the search's gangs hold; none: unknown.
  void set_in_use(std::function<std::optional<InUse>()> in_use) { in_use_ = std::move(in_use); }
  void show(const Event& event, const Trial* trial, const Experiment& experiment);
  /// A line of what people should know; beside a table it comes in the summary.
  void note(const std::string& notice, Seconds now);
  /// A line of what is waited for, above a table.
  void say(const std::string& text, Seconds now);
  /// Draws the table again if the last time is 200 ms ago.
  void tick(const Experiment& experiment, Seconds now);
  /// The last state of the table, and the summary below it.
  void finish(const Experiment& experiment, const Overview& overview);

 private:
  std::optional<TrialId> first_with_error_of(const Trial& trial);
  void draw(const Experiment& experiment, Seconds now);
  void write(const std::string& text) const;

  Kind kind_;
  int fd_;
  bool colour_;
  int ranks_ = 1;
  std::function<std::optional<InUse>()> in_use_;
  std::optional<Seconds> last_drawn_;
  std::map<std::string, TrialId> errors_;  // by cause: the first trial with it, which was shown
};

}  // namespace troupe::tune
