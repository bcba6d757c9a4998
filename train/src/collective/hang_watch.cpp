#include "collective/hang_watch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "log/log.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kMostNamed = 16;

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string name_ranks(const std::vector<int>& ranks) {
  const auto shown = std::min(ranks.size(), kMostNamed);
  const auto more = ranks.size() - shown;
  return fmt::format(
      "rank{} {}{}", ranks.size() == 1 ? "" : "s",
      fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

HangWatch::HangWatch(GangContext& gang, RollCall& roll_call, std::string communicator,
                     std::chrono::milliseconds after)
    : gang_(gang), roll_call_(roll_call), communicator_(std::move(communicator)), after_(after) {}

bool HangWatch::may_tell(const HangingCall& call) {
  if (call.between_two) return true;
  if (claim_on_node_ && !claim_on_node_(call.number)) return false;
  if (call.sees_a_part) return roll_call_.hears(call.number) ? roll_call_.claim(call.number) : true;
  return claim_on_node_ || roll_call_.claim(call.number);
}

std::string HangWatch::whom_it_waits_for(const HangingCall& call) {
  if (!call.sees_a_part) {
    return fmt::format(" for {}, which {} not called it or {} still in it",
                       name_ranks(call.missing), call.missing.size() == 1 ? "has" : "have",
                       call.missing.size() == 1 ? "stands" : "stand");
  }
  if (roll_call_.is_full()) return "";
  if (!roll_call_.hears(call.number)) {
    return "; rank 0, which keeps the gang's rendezvous, does not answer: its process is stopped, "
           "or its machine is cut off";
  }
  const auto absent = roll_call_.absent(call.number);
  if (absent.empty()) return "; every rank has come, but the call does not end";
  return fmt::format(
      "; nothing was heard in this call from {}, which {} not called it, {} just come, or {} still "
      "in it",
      name_ranks(absent), absent.size() == 1 ? "has" : "have", absent.size() == 1 ? "has" : "have",
      absent.size() == 1 ? "stands" : "stand");
}

void HangWatch::look(const HangingCall& call) {
  looked_ = true;
  if (!may_tell(call)) return;
  told_ = true;
  log::warn(
      fmt::format("rank {} has waited {:.1f} s in {} (communicator \"{}\"){}. The call fails "
                  "after {:g} s, the `timeout` of the communicator's options",
                  gang_.rank(), seconds(call.waited), call.name, communicator_,
                  whom_it_waits_for(call), seconds(call.timeout)));
}

void HangWatch::end(const std::string& call, std::chrono::milliseconds waited) {
  told_ = false;
  log::warn(fmt::format("rank {} goes on: {} (communicator \"{}\") ended after {:.1f} s",
                        gang_.rank(), call, communicator_, seconds(waited)));
}

}  // namespace troupe::train
