#pragma once

#include <chrono>

namespace troupe::transport {

/// The silence of a head that a node and a driver speak of.
inline constexpr std::chrono::seconds kSilenceNotice{10};

/// What a node, or a driver, makes of a head that does not echo its beats. The head is waited for:
/// it may stand still, stopped or starved, and go on. That the head's process has ended, or that
/// its host is gone, ends the connection (liveness.hpp), and needs no beat. A value, to be asked at
/// each beat; the time is passed in.
///
///   [speaks] --look(): silent for longer than `notice`--> [silent], once
///   [silent] --heard()--> [speaks], once
///   [silent] --look(): silent for longer than `limit`--> [gone]
///
/// With a `limit` of at most `notice`, [gone] follows [speaks].
class PeerSilence {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Change { None, FellSilent, SpeaksAgain, Gone };

  constexpr PeerSilence(Clock::duration notice, Clock::duration limit)
      : notice_(notice), limit_(limit) {}

  Change heard(Clock::time_point now) {
    heard_ = now;
    if (!is_silent_) return Change::None;
    is_silent_ = false;
    return Change::SpeaksAgain;
  }
  /// `stood`: for so long this process itself has stood still since the last look, which does not
  /// count as the peer's silence.
  Change look(Clock::time_point now, Clock::duration stood) {
    heard_ += stood;
    if (now - heard_ > limit_) return Change::Gone;
    if (is_silent_ || now - heard_ <= notice_) return Change::None;
    is_silent_ = true;
    return Change::FellSilent;
  }

 private:
  Clock::duration notice_, limit_;
  Clock::time_point heard_{};
  bool is_silent_ = false;
};

}  // namespace troupe::transport
