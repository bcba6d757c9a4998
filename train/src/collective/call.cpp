#include "collective/call.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::train {
namespace {

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
  }
  return "unknown call";
}

std::string arguments_of(const Announcement& what) {
  switch (what.kind) {
    case CallKind::AllReduce:
    case CallKind::ReduceScatter:
      return fmt::format(" of {} {} ({})", what.count, name_of(what.type), name_of(what.op));
    case CallKind::Broadcast:
      return fmt::format(" of {} {} from rank {}", what.count, name_of(what.type), what.root);
    case CallKind::AllGather:
      return fmt::format(" of {} {}", what.count, name_of(what.type));
    case CallKind::Allocate:
      return fmt::format(" of {} bytes", what.count);
    default:
      return "";
  }
}

}  // namespace

std::string to_string(const Announcement& what) {
  if (what.kind == CallKind::Start) return name_of(what.kind);
  return fmt::format("{}{}, call {}", name_of(what.kind), arguments_of(what), what.sequence);
}

void check_same(int rank, const Announcement& mine, int peer, const Announcement& theirs) {
  if (mine == theirs) return;
  throw std::invalid_argument(fmt::format(
      "the ranks made different calls: rank {} {}; rank {} {}. Every rank must make the same calls in the same order",
      rank, to_string(mine), peer, to_string(theirs)));
}

bool Patience::expired() {
  if (gang_is_broken()) throw_broken();
  const auto now = Clock::now();
  if (!counting_) {
    counting_ = true;
    deadline_ = now + timeout_;
  }
  return now >= deadline_;
}

void Patience::throw_broken() const {
  auto why = gang_.why_broken();
  why.kind = Failure::Kind::GangBroken;
  why.message =
      fmt::format("the gang is broken: {} (noticed by rank {} in {})", why.message, gang_.rank(), to_string(what_));
  throw GangBroken(std::move(why));
}

void Patience::throw_gone(const std::string& cause) const {
  throw GangBroken(
      Failure{.kind = Failure::Kind::GangBroken,
              .message = fmt::format("{} (noticed by rank {} in {})", cause, gang_.rank(), to_string(what_))});
}

void Patience::throw_timed_out(const std::vector<int>& missing) const {
  throw TimedOut(Failure{
      .kind = Failure::Kind::TimedOut,
      .message = fmt::format("rank {} waited {} ms in {}; rank{} {} did not come", gang_.rank(), timeout_.count(),
                             to_string(what_), missing.size() == 1 ? "" : "s", fmt::join(missing, ", "))});
}

}  // namespace troupe::train
