#include "plan/needs.hpp"

namespace troupe::launch {

detail::RequestOptions request_of_host(const RankNeeds& needs, int ranks) {
  auto request = detail::own(Options{.cpus = needs.cpus * ranks,
                                     .gpus = needs.gpus * ranks,
                                     .memory_gb = needs.memory_gb * ranks});
  request.labels = needs.labels;
  return request;
}

std::optional<Strategy> strategy_named(const std::string& name) {
  if (name == "pack") return Strategy::Pack;
  if (name == "spread") return Strategy::Spread;
  if (name == "strict-pack") return Strategy::StrictPack;
  if (name == "strict-spread") return Strategy::StrictSpread;
  return std::nullopt;
}

}  // namespace troupe::launch
