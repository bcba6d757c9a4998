#include "checkpoint/saving/saver_on_demand.hpp"

#include <utility>

#include "collective/call.hpp"

namespace troupe::train {
namespace {

constexpr const char* kForCheckpoints = "context checkpoints";  // its name in the gang

}  // namespace

SaverOnDemand::SaverOnDemand(GangContext& gang, std::filesystem::path storage,
                             std::chrono::milliseconds timeout)
    : gang_(gang), storage_(std::move(storage)), timeout_(timeout) {}

Saver& SaverOnDemand::get() {
  if (made_) return *made_;
  std::unique_ptr<Communicator> between;
  if (gang_.size() > 1) {
    // Ranks wait for each other's disks, which is no hang.
    between = make_host_communicator(
        gang_, {.name = kForCheckpoints, .timeout = timeout_, .warn_after = {}});
  }
  made_ = std::make_unique<Saver>(storage_, std::move(between), timeout_);
  return *made_;
}

void SaverOnDemand::abort(std::string_view reason) {
  if (made_) made_->abort(reason);
}

void SaverOnDemand::finish() {
  if (made_) made_->finish();
}

void SaverOnDemand::decline(const std::string& why) const {
  if (!made_ && has_storage()) train::decline(gang_, kForCheckpoints, why);
}

}  // namespace troupe::train
