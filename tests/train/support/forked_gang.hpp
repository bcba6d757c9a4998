#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/gang_context.hpp>

#include "eventually.hpp"
#include "guard.hpp"

/// Gangs without a cluster, for tests: each rank is a forked process, the rendezvous is a table in
/// shared memory, and the parent plays the head: when a rank dies by a signal it sets the gang's
/// broken word.
namespace troupe::testing {

using test::eventually;

/// How one rank ended.
struct Outcome {
  int signal = 0;  ///< that ended it; 0: none
  bool threw = false;
  std::string type;     ///< of what it threw: "GangBroken", "TimedOut", "invalid_argument", "other"
  std::string message;  ///< what() of that
};

struct ForkedGang {
  std::vector<int> node_ranks;  ///< one entry for each rank; {0, 0, 1}: two nodes
  /// Then the ranks left are killed, which shows as signal 9. Ranks that spin take long where they
  /// are more than the cores, and more so under a sanitizer.
  std::chrono::seconds limit = 4 * test::kGuard;
  bool announce_deaths = true;  ///< false: nobody sets the broken word

  static ForkedGang on_one_node(int ranks) {
    return {std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  }
  /// Rank k is on node k % nodes, so that a node's ranks are not neighbours.
  static ForkedGang on_nodes(int ranks, int nodes);

  /// Forks, runs `rank` in every process, waits for all. The caller must not have touched LibTorch
  /// or made threads.
  std::vector<Outcome> run(const std::function<void(GangContext&)>& rank) const;
};

/// Runs gangs whose waits last `wait`, and twice as long each time, until `holds` says of what came
/// of one that no rank was late: on a slow machine a short wait is over before the ranks have come
/// that do come. The last is returned, and `wait` is what it was for that.
std::vector<Outcome> run_with_longer_waits(
    const ForkedGang& gang, std::chrono::milliseconds& wait,
    const std::function<void(GangContext&)>& rank,
    const std::function<bool(const std::vector<Outcome>&)>& holds);

/// In a rank: tells rank `to`, when the scope is left, that it has returned or thrown from it.
class Leaving {
 public:
  Leaving(GangContext& gang, int to) : gang_(gang), to_(to) {}
  ~Leaving();
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

 private:
  GangContext& gang_;
  const int to_;
};
/// In a rank whose process lives on: waits until every other one has left its scope with Leaving.
/// Throws TimedOut, naming one that has not.
void await_leaving(GangContext& gang);

/// "" if every rank came to its end; else who did not and why.
std::string failures(const std::vector<Outcome>& outcomes);

/// In a rank: throws with the place unless it holds. (Catch's macros report to the wrong process
/// there.)
void expect(bool holds, const std::string& what);
/// The same where there are many places: `say` puts one into words only if it is wrong.
template <std::invocable Say>
void expect(bool holds, Say say) {
  if (!holds) expect(false, std::string(say()));
}

/// In a rank: the text of what `call` throws, which must be an Expected.
template <class Expected, class Call>
std::string thrown_by(Call call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  expect(false, "the call fails");
  return {};
}

inline void expect_in(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, "\"" + part + "\" in \"" + text + "\"");
}

}  // namespace troupe::testing
