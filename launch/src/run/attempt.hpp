#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/news.hpp"

namespace troupe::launch {

/// Why a rank is to blame for the end of its gang.
struct FirstFailure {
  int rank = 0;
  int pid = 0;
  int exit_code = 0;
  int signal = 0;
  double at = 0;  ///< seconds since 1970
  bool started = true;
  std::string why;  ///< in words: "ended with exit code 3", "was killed by signal 9 (Killed)"
  std::string traceback = {};  ///< of Python, where the program wrote one; empty: it did not
};

/// One attempt at running a gang of programs, as its driver sees it. Pure.
///
///   [running] --every rank has ended well--> [over]
///       |--a rank has failed, or was lost; interrupt()--> [stopping] --every rank has ended--> [over]
///
/// 1. is_stopping() is true from the first failure or interrupt() on, and then for good.
/// 2. first_failure() is the failure with the earliest time among ranks that had not been told to
///    end: what a failure caused in other ranks before they were told comes later.
/// 3. is_over() once each rank has ended or was lost, each counted once. A rank whose exit is known
///    has not ended before all that it wrote is there too.
class Attempt {
 public:
  explicit Attempt(int ranks) : ended_(static_cast<std::size_t>(ranks), false), left_(ranks) {}

  /// Its program has ended: a failure ends the others, though what the rank wrote still waits.
  void on_exit(int rank, const RankEnd& end);
  /// As on_exit(), and all that it wrote is there.
  void on_end(int rank, const RankEnd& end);
  /// Its host is gone, and it with it. `at`: when the driver heard of it.
  void on_lost(int rank, const std::string& why, double at);
  void interrupt() { stopping_ = true; }

  bool is_stopping() const { return stopping_; }
  bool is_over() const { return left_ == 0; }
  bool has_ended(int rank) const { return ended_.at(static_cast<std::size_t>(rank)); }
  int left() const { return left_; }
  const std::optional<FirstFailure>& first_failure() const { return first_; }

 private:
  bool note(int rank);
  void blame(FirstFailure failure);

  std::vector<bool> ended_;
  int left_ = 0;
  bool stopping_ = false;
  std::optional<FirstFailure> first_;
};

}  // namespace troupe::launch
