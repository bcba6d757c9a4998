#pragma once

#include <compare>
#include <string>
#include <string_view>

#include <troupe/scheduler/ids.hpp>

namespace troupe::scheduler {

/// The name of an actor as a key. One with a namespace before it ("shared/counter") is the
/// cluster's; any other one is its job's.
struct ActorName {
  JobId job;  // none: the cluster's
  std::string name;

  ActorName(JobId of, std::string_view text)
      : job(text.find('/') == std::string_view::npos ? of : JobId()), name(text) {}
  auto operator<=>(const ActorName&) const = default;
};

}  // namespace troupe::scheduler
