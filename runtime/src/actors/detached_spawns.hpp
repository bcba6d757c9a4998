#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "actors/actors.hpp"
#include "objects/process_context.hpp"

namespace troupe::runtime {

/// The detached actors that a driver has made. Such an actor depends on its creator until it is
/// constructed, so the program's end waits for that. Any thread.
class DetachedSpawns {
 public:
  void add(const std::string& name, const detail::ActorPtr& actor);

  /// Waits for those that are not constructed yet, until the cluster's end and for half a minute at
  /// most; tells `say` so where it takes longer than a second. Then tells which are not made, and why,
  /// but for those of which the program has asked that itself.
  void finish(ProcessContext& process, const detail::Object& cluster_end,
              const std::function<void(const std::string&)>& say);

 private:
  struct Spawn {
    std::string name;
    detail::ActorPtr actor;
  };
  std::vector<Spawn> waiting() const;

  mutable std::mutex mutex_;
  std::vector<Spawn> spawns_;  // but most of those that are made
};

}  // namespace troupe::runtime
