#include "collective/call.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/bounded.hpp"

namespace troupe::train {
namespace {

// Of a start, when a wait looks whether a rank has declined: late, since a look may take RollCall's
// time for an end.
constexpr std::chrono::milliseconds kFirstLook{500};
constexpr std::chrono::milliseconds kNextLook{2000};
// Of a look in another call, which may be about to end: a fortieth of the time between looks.
constexpr std::chrono::milliseconds kShortLook{50};

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::Start:
      return "start of the communicator";
    case CallKind::AllReduce:
      return "all_reduce";
    case CallKind::Broadcast:
      return "broadcast";
    case CallKind::AllGather:
      return "all_gather";
    case CallKind::ReduceScatter:
      return "reduce_scatter";
    case CallKind::Barrier:
      return "barrier";
    case CallKind::Allocate:
      return "allocate";
    case CallKind::AllToAll:
      return "all_to_all";
    case CallKind::AllGatherParts:
      return "all_gather";
    case CallKind::Reduce:
      return "reduce";
    case CallKind::Gather:
      return "gather";
    case CallKind::Scatter:
      return "scatter";
    case CallKind::Split:
      return "split";
    case CallKind::Send:
      return "send";
    case CallKind::Recv:
      return "recv";
    case CallKind::Leave:
      return "the end of the communicator";
  }
  return "unknown call";
}

/// The name that the options gave it.
std::string without_prefix(const std::string& name) {
  constexpr std::string_view prefix = "collective/";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::string arguments_of(const Announcement& what) {
  switch (what.kind) {
    case CallKind::AllReduce:
    case CallKind::ReduceScatter:
      return fmt::format(" of {} {} ({})", what.count, name_of(what.type), name_of(what.op));
    case CallKind::Broadcast:
    case CallKind::Scatter:
      return fmt::format(" of {} {} from rank {}", what.count, name_of(what.type), what.root);
    case CallKind::Gather:
      return fmt::format(" of {} {} to rank {}", what.count, name_of(what.type), what.root);
    case CallKind::Reduce:
      return fmt::format(" of {} {} ({}) to rank {}", what.count, name_of(what.type),
                         name_of(what.op), what.root);
    case CallKind::AllGatherParts:
      return fmt::format(" of {} {} in unequal parts (number {:x} of all such)", what.count,
                         name_of(what.type), static_cast<std::uint32_t>(what.root));
    case CallKind::AllGather:
    case CallKind::AllToAll:
      return fmt::format(" of {} {}", what.count, name_of(what.type));
    case CallKind::Send:
      return fmt::format(" of {} {} to rank {}", what.count, name_of(what.type), what.root);
    case CallKind::Recv:
      return fmt::format(" of {} {} from rank {}", what.count, name_of(what.type), what.root);
    case CallKind::Allocate:
      return fmt::format(" of {} bytes", what.count);
    default:
      return "";
  }
}

}  // namespace

std::string call_in_words(const Announcement& what) {
  return name_of(what.kind) + arguments_of(what);
}

std::string to_string(const Announcement& what) {
  if (what.kind == CallKind::Start) return name_of(what.kind);
  const bool between_two = what.kind == CallKind::Send || what.kind == CallKind::Recv;
  return fmt::format("{}, {} {}", call_in_words(what), between_two ? "message" : "call",
                     what.sequence);
}

void check_same(int rank, const Announcement& mine, int peer, const Announcement& theirs) {
  if (mine == theirs) return;
  throw std::invalid_argument(
      fmt::format("the ranks made different calls: rank {} {}; rank {} {}. Every rank must make "
                  "the same calls in the same order",
                  rank, to_string(mine), peer, to_string(theirs)));
}

void check_match(int rank, const Announcement& mine, int peer, const Announcement& theirs) {
  const bool pair = (mine.kind == CallKind::Send && theirs.kind == CallKind::Recv) ||
                    (mine.kind == CallKind::Recv && theirs.kind == CallKind::Send);
  if (pair && mine.count == theirs.count && mine.type == theirs.type) return;
  throw std::invalid_argument(
      fmt::format("rank {} {} and rank {} {} do not fit: one sends, the other receives as many of "
                  "the same type",
                  rank, to_string(mine), peer, to_string(theirs)));
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an unknown error";
  }
}

Entrance::Inside Entrance::enter(int rank, const Announcement& what) {
  auto running = kNobody;
  if (!running_.compare_exchange_strong(running, static_cast<std::int32_t>(what.kind),
                                        std::memory_order_acquire)) {
    throw std::logic_error(fmt::format(
        "rank {} called {}{} while another of its threads is in {} of the same communicator. A "
        "communicator does one call at a time: call it from one thread, or give each thread a "
        "communicator of its own with split()",
        rank, name_of(what.kind), arguments_of(what), name_of(static_cast<CallKind>(running))));
  }
  return Inside(running_);
}

std::optional<Entrance::Inside> Entrance::enter_to_leave() {
  auto running = kNobody;
  const auto leaving = static_cast<std::int32_t>(CallKind::Leave);
  if (!running_.compare_exchange_strong(running, leaving, std::memory_order_acquire))
    return std::nullopt;
  return std::optional<Inside>(std::in_place, running_);
}

Failure left_by(int rank, const Failure& call) {
  return {.kind = Failure::Kind::GangBroken,
          .message = fmt::format("rank {} left the communicator, as its call failed: {}", rank,
                                 Error(call).what())};
}

void decline(GangContext& gang, const std::string& name, const std::string& why) {
  RollCall(gang, "collective/" + name).tell_end(fmt::format("rank {} {}", gang.rank(), why));
}

Patience::Patience(GangContext& gang, Limits limits, const std::string& name, bool sees_all)
    : gang_(gang),
      timeout_(bounded(limits.timeout)),
      sees_all_(sees_all),
      roll_call_(gang, name),
      hang_(gang, roll_call_, without_prefix(name), bounded(limits.warn_after)) {}

// Who is there has said so before anybody asks.
std::chrono::milliseconds Patience::silence() const {
  const auto silence = std::min(timeout_ / 8, RollCall::kLongestSilence);
  return hang_.after().count() > 0 ? std::min(silence, hang_.after() / 3) : silence;
}

std::string Patience::place() const {
  const auto waited =
      counting_ ? std::chrono::duration<double>(Clock::now() - since_).count() : 0.0;
  return fmt::format("noticed by rank {} in {}, after {:.1f} s", gang_.rank(), to_string(what_),
                     waited);
}

bool Patience::expired() {
  if (gang_is_broken()) throw_broken();
  now_ = Clock::now();
  if (!counting_) {
    counting_ = true;
    since_ = now_;
    next_look_ = now_ + (what_.kind == CallKind::Start ? kFirstLook : kNextLook);
  }
  if (now_ >= next_look_ && looks_for_end())
    check_told_end(what_.kind == CallKind::Start ? RollCall::kForEnd : kShortLook);
  if (!answered_ && now_ - since_ >= silence() && calls_roll()) {
    answered_ = true;
    roll_call_.answer(what_.sequence);
  }
  return now_ - since_ >= timeout_;
}

void Patience::note_hang(const std::vector<int>& missing) {
  try {
    hang_.look({.name = to_string(what_),
                .number = what_.sequence,
                .waited = std::chrono::duration_cast<std::chrono::milliseconds>(now_ - since_),
                .timeout = timeout_,
                .missing = missing,
                .between_two = is_between_two(),
                .sees_a_part = calls_roll()});
  } catch (const Error&) {
    // The wait that goes on says why it ends. A rendezvous that refuses costs the line only.
    if (gang_is_broken()) throw_broken();
  }
}

void Patience::say_that_it_went_on() {
  hang_.end(to_string(what_),
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - since_));
}

void Patience::check_told_end(std::chrono::milliseconds wait) {
  std::optional<std::string> told;
  try {
    told = roll_call_.told_end(wait);
  } catch (const Error&) {
    if (gang_is_broken()) throw_broken();
  }
  if (told) throw_gone(*told);
  next_look_ = Clock::now() + kNextLook;
}

void Patience::throw_broken() const {
  auto why = gang_.why_broken();
  why.kind = Failure::Kind::GangBroken;
  why.message = fmt::format("the gang is broken: {} ({})", why.message, place());
  throw GangBroken(std::move(why));
}

void Patience::throw_gone(const std::string& cause) const {
  throw GangBroken(Failure{.kind = Failure::Kind::GangBroken,
                           .message = fmt::format("{} ({})", cause, place())});
}

void Patience::throw_hung_up(int rank, int error) {
  if (gang_is_broken()) throw_broken();
  check_told_end(RollCall::kForEnd);
  throw_gone(error == 0
                 ? fmt::format("rank {} closed its connection", rank)
                 : fmt::format("the connection to rank {} broke: {}", rank, std::strerror(error)));
}

void Patience::throw_timed_out(const std::vector<int>& missing) {
  auto absent = calls_roll() ? roll_call_.absent(what_.sequence) : missing;
  if (absent.empty()) absent = missing;
  const auto who = absent.empty()
                       ? std::string("every rank has come, but the call does not end")
                       : fmt::format("rank{} {} did not come", absent.size() == 1 ? "" : "s",
                                     fmt::join(absent, ", "));
  throw TimedOut(Failure{.kind = Failure::Kind::TimedOut,
                         .message = fmt::format("rank {} waited {:.1f} s in {}; {}", gang_.rank(),
                                                std::chrono::duration<double>(timeout_).count(),
                                                to_string(what_), who)});
}

std::chrono::milliseconds Patience::until_next_look() const {
  const auto waited = now_ - since_;
  auto next = timeout_;
  if (looks_for_end())
    next = std::min(next, std::chrono::ceil<std::chrono::milliseconds>(waited) + kFirstLook);
  if (!answered_ && calls_roll()) next = std::min(next, silence());
  if (!hang_.has_looked() && hang_.after().count() > 0) next = std::min(next, hang_.after());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - waited);
  return std::max(left, std::chrono::milliseconds(1));
}

std::string Patience::await(const std::string& key, int rank) {
  for (;;) {
    check([rank] { return std::vector{rank}; });
    try {
      return gang_.rendezvous().get(key, until_next_look());
    } catch (const TimedOut&) {
      // The next check() says whether that was the deadline.
    } catch (const GangBroken&) {
      if (gang_is_broken()) throw_broken();
      throw;
    }
  }
}

void Patience::tell_end(const std::string& why) {
  if (!sees_all_ && !gang_is_broken()) roll_call_.tell_end(why);
}

}  // namespace troupe::train
