#include "run/attempt.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

std::string in_words(const RankEnd& end) {
  if (!end.not_started.empty()) return "could not be started: " + end.not_started;
  if (end.signal != 0)
    return fmt::format("was ended by signal {} ({}){}{}", end.signal, ::strsignal(end.signal),
                       end.limit.empty() ? "" : ": ", end.limit);
  return fmt::format("ended with exit code {}", end.exit_code);
}

}  // namespace

bool Attempt::note(int rank) {
  if (ended_.at(static_cast<std::size_t>(rank))) return false;
  ended_[static_cast<std::size_t>(rank)] = true;
  --left_;
  return true;
}

void Attempt::blame(FirstFailure failure) {
  if (!first_ || failure.at < first_->at) first_ = std::move(failure);
}

std::string AttemptNumber::folder() const {
  if (index() == 0) return {};
  if (is_grown) return fmt::format("growth-{}", growths);
  return is_returned ? fmt::format("return-{}", returns) : fmt::format("restart-{}", restarts);
}

void Attempt::interrupt() { stopping_ = interrupted_ = true; }

void Attempt::grow() {
  if (can_grow()) stopping_ = growing_ = true;
}

void Attempt::on_end(int rank, const RankEnd& end) {
  if (note(rank)) on_exit(rank, end);
}

void Attempt::on_exit(int rank, const RankEnd& end) {
  one_ended_ = true;
  const bool well = end.exit_code == 0 && end.signal == 0 && end.not_started.empty();
  one_was_ended_ = one_was_ended_ || !well || end.was_told_to;
  if (well || end.was_told_to || growing_) return;
  blame({.rank = rank,
         .pid = end.pid,
         .exit_code = end.exit_code,
         .signal = end.signal,
         .at = end.at,
         .started = end.not_started.empty(),
         .why = in_words(end),
         .traceback = end.traceback});
  stopping_ = true;
}

void Attempt::on_lost(int rank, const std::string& why, double at) {
  if (!note(rank)) return;
  one_was_ended_ = true;
  if (!stopping_) blame({.rank = rank, .exit_code = 1, .at = at, .why = "was lost: " + why});
  stopping_ = true;
}

}  // namespace troupe::launch
