#include "prepared/communicators_on_demand.hpp"

#include <utility>

namespace troupe::train {

CommunicatorsOnDemand::CommunicatorsOnDemand(const ContextRank& here, std::string name)
    : here_(here), name_(std::move(name)) {}

Communicators& CommunicatorsOnDemand::made() {
  if (!made_.device)
    made_ = make_communicators(here_.member.gang(), here_.options, here_.device, name_);
  return made_;
}

Communicator& CommunicatorsOnDemand::device() { return *made().device; }
Communicator& CommunicatorsOnDemand::control() { return made().control(); }

void CommunicatorsOnDemand::decline(const std::string& why) const {
  if (!made_.device) decline_communicators(here_.member.gang(), name_, why);
}

}  // namespace troupe::train
