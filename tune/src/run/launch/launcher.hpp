#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/tune/experiment.hpp>

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

  /// Asks for a gang. Not called again before the last one's Placed, Failed or Impossible was
  /// returned by wait().
  virtual void launch(const Launch& launch) = 0;
  /// The next event; none if there is none within `timeout`.
  virtual std::optional<GangEvent> wait(Seconds timeout) = 0;
  /// The verdict about the report that the trial's gang waits with.
  virtual void answer(TrialId trial, std::int64_t k, Verdict verdict) = 0;
  /// Tells the attempt that waits with report k to end, and begins `launch`, of the same trial, in
  /// its place as soon as it has.
  virtual void replace(const Launch& launch, std::int64_t k) = 0;
  /// Ends the gang now, or takes the request for it back.
  virtual void end(TrialId trial) = 0;
  /// Since the run began.
  virtual Seconds now() const = 0;
};

}  // namespace troupe::tune
