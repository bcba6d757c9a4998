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

/// Which attempt of a run it is. A value.
struct AttemptNumber {
  int restarts = 0;          ///< after failures, so far
  int growths = 0;           ///< to have more ranks, so far
  int returns = 0;           ///< after growths of which no rank was started, so far
  bool is_grown = false;     ///< the attempt before was ended for this one to have more ranks
  bool is_returned = false;  ///< the one before was grown, and did not start

  int index() const { return restarts + growths + returns; }
  AttemptNumber after_failure() const { return {restarts + 1, growths, returns}; }
  AttemptNumber after_growth() const { return {restarts, growths + 1, returns, true}; }
  AttemptNumber after_vain_growth() const { return {restarts, growths, returns + 1, false, true}; }
  /// Of its logs, below that of the run's first attempt: "restart-1", "growth-2", "return-1"; empty:
  /// it is that.
  std::string folder() const;
};

/// One attempt at running a gang of programs, as its driver sees it. Pure.
///
///   [running] --every rank has ended well--> [over]
///       |--a rank has failed, or was lost; interrupt(); grow()--> [stopping] --every rank has ended--> [over]
///
/// 1. is_stopping() is true from the first failure, interrupt() or grow() on, and then for good.
/// 2. first_failure() is the failure with the earliest time among ranks that had not been told to
///    end: what a failure caused in other ranks before they were told comes later. Once grow() has
///    had the ranks end, none is to blame: hosts are told one after the other, and a rank whose peer
///    was told first may fail before it is. A fault of the program comes back in the next attempt.
/// 3. is_over() once each rank has ended or was lost, each counted once. A rank whose exit is known
///    has not ended before all that it wrote is there too.
/// 4. can_grow() is false, and grow() does nothing, once a rank has ended, or the ranks are to end
///    already: a program that is about to be done is not begun again.
/// 5. is_growing() is true where grow() is why ranks ended: after it at least one was told to end,
///    failed or was lost, and nobody called interrupt(), before or after.
class Attempt {
 public:
  explicit Attempt(int ranks) : ended_(static_cast<std::size_t>(ranks), false), left_(ranks) {}

  /// Its program has ended: a failure ends the others, though what the rank wrote still waits.
  void on_exit(int rank, const RankEnd& end);
  /// As on_exit(), and all that it wrote is there.
  void on_end(int rank, const RankEnd& end);
  /// Its host is gone, and it with it. `at`: when the driver heard of it.
  void on_lost(int rank, const std::string& why, double at);
  void interrupt();
  bool can_grow() const { return !stopping_ && !one_ended_; }
  /// Has the ranks end, so that the gang can be formed anew with more of them.
  void grow();

  bool is_stopping() const { return stopping_; }
  bool is_over() const { return left_ == 0; }
  bool has_ended(int rank) const { return ended_.at(static_cast<std::size_t>(rank)); }
  bool is_growing() const { return growing_ && !interrupted_ && one_was_ended_; }
  int left() const { return left_; }
  const std::optional<FirstFailure>& first_failure() const { return first_; }

 private:
  bool note(int rank);
  void blame(FirstFailure failure);

  std::vector<bool> ended_;
  int left_ = 0;
  bool stopping_ = false;
  bool growing_ = false;        // grow() has had the ranks end
  bool interrupted_ = false;    // interrupt() has
  bool one_ended_ = false;      // though what it wrote may still wait
  bool one_was_ended_ = false;  // that one, or another: since it was told to, or not well
  std::optional<FirstFailure> first_;
};

}  // namespace troupe::launch
