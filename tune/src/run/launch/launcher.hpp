#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "output/in_use.hpp"

namespace troupe::tune {

/// What became of a launched trial.
struct GangEvent {
  enum class Kind : std::uint8_t {
    Placed,        ///< the gang is there and the function begins
    Reported,      ///< the gang's k-th report; waits for answer()
    Ended,         ///< the function returned on all ranks
    Failed,        ///< it threw, a rank died, or end() was called
    Impossible,    ///< the cluster can never place such a gang
    Notice,        ///< text: what people should know
    ClusterEnded,  ///< of no trial; text: how. What was launched ends with it
  };
  Kind kind = Kind::Failed;
  TrialId trial = 0;
  std::int64_t k = 0;
  Metrics metrics = {};
  std::string checkpoint = {};
  std::string text = {};
  Fault fault = Fault::Trial;  ///< of Failed
  /// Of Failed: of the text what does not depend on where it happened; empty: all of it.
  std::string cause = {};
  /// Of Failed, where user code threw: the text without names of C++; else empty.
  std::string plain_text = {};
  /// Of Failed: something went away, as all does with the cluster.
  bool lost = false;
  std::vector<Place> places = {};  ///< of Placed: of each rank; empty: unknown
};
/// Whether no other event of the trial follows, until it is launched again.
inline bool is_last(const GangEvent& event) {
  using Kind = GangEvent::Kind;
  return event.kind == Kind::Ended || event.kind == Kind::Failed || event.kind == Kind::Impossible;
}

/// Turns launches into gangs: the cluster in a program, virtual time in a test. Used by one thread.
/// Every launch is answered by Placed and then Ended or Failed, or by Failed or Impossible alone,
/// at any later time. One that replaces another answers for both: the one that it replaces has no
/// end of its own.
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Asks for a gang, behind those that were asked for before. At most one more is asked for at a
  /// time than gangs have ended whose places nobody has taken.
  virtual void launch(const Launch& launch) = 0;
  /// The next event; none if there is none within `timeout`.
  virtual std::optional<GangEvent> wait(Seconds timeout) = 0;
  /// An event that has come beside the one that wait() returned last: none waits for it. Where
  /// events are taken one at a time, never any.
  virtual std::optional<GangEvent> at_hand() { return std::nullopt; }
  /// The verdict about the report that the trial's gang waits with.
  virtual void answer(TrialId trial, std::int64_t k, Verdict verdict) = 0;
  /// Tells the attempt that waits with report k to end, and begins `launch`, of the same trial, in
  /// its place as soon as it has.
  virtual void replace(const Launch& launch, std::int64_t k) = 0;
  /// Ends the gang now, or takes the request for it back.
  virtual void end(TrialId trial) = 0;
  /// Tells the attempt to end by itself, where its function runs and can be told so; else as end().
  /// No report follows that was not on its way already, and the last event is that of end(),
  /// whatever became of the attempt. It may not come until end() is called.
  virtual void tell_to_end(TrialId trial) { end(trial); }
  /// Looks where the ranks of a silent attempt stand, and tells it as a Notice that begins with
  /// `what`. -> false: it is not known here, and no notice comes.
  virtual bool tell_where(TrialId /*trial*/, const std::string& /*what*/) { return false; }
  /// Whether end() ends a function that neither reports nor returns: not where it runs in this
  /// process.
  virtual bool ends_silent() const { return true; }
  /// Since the run began.
  virtual Seconds now() const = 0;
  /// What the gangs that are placed hold; none: unknown. Returns at once.
  virtual std::optional<InUse> in_use() { return std::nullopt; }
  /// The copies of checkpoints that attempts were sent, which are over since the last call.
  virtual std::vector<std::string> take_spare_copies() { return {}; }
};

}  // namespace troupe::tune
