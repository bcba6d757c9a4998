#include "collective/roll_call.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::train {
namespace {

constexpr int kMostKeys = 20'000;  // of all ranks together: a rendezvous holds 100,000
constexpr std::chrono::milliseconds kForAll{2000};
constexpr std::chrono::milliseconds kForOne{200};
constexpr std::size_t kLongestReason = 1000;

}  // namespace

std::string RollCall::key(std::uint64_t call, int rank) const {
  return fmt::format("{}/here/{}/{}", name_, call, rank);
}

bool RollCall::is_full() const { return answers_ >= std::max(kMostKeys / gang_.size(), 1); }

void RollCall::answer(std::uint64_t call) {
  if (is_full()) return;
  ++answers_;
  try {
    gang_.rendezvous().set(key(call, gang_.rank()), "1");
  } catch (const Error&) {
  }
}

bool RollCall::hears(std::uint64_t call) {
  try {
    gang_.rendezvous().get(key(call, gang_.rank()), kForOne);
    return true;
  } catch (const TimedOut&) {
    return false;
  }
}

bool RollCall::claim(std::uint64_t call) {
  if (is_full()) return true;
  ++answers_;
  try {
    gang_.rendezvous().set(fmt::format("{}/told/{}", name_, call), std::to_string(gang_.rank()));
  } catch (const Refused&) {
    return false;
  } catch (const TimedOut&) {
  }
  return true;
}

std::vector<int> RollCall::absent(std::uint64_t call) {
  const auto slice = std::clamp(kForAll / gang_.size(), std::chrono::milliseconds(10), kForOne);
  std::vector<int> ranks;
  for (int r = 0; r < gang_.size(); ++r) {
    if (r == gang_.rank()) continue;
    try {
      gang_.rendezvous().get(key(call, r), slice);
    } catch (const TimedOut&) {
      ranks.push_back(r);
    }
  }
  return ranks;
}

void RollCall::tell_end(const std::string& why) {
  try {
    gang_.rendezvous().set(name_ + "/end", why.substr(0, kLongestReason));
  } catch (const Error&) {
  }
}

std::optional<std::string> RollCall::told_end(std::chrono::milliseconds wait) {
  try {
    return gang_.rendezvous().get(name_ + "/end", wait);
  } catch (const TimedOut&) {
    return std::nullopt;
  }
}

}  // namespace troupe::train
