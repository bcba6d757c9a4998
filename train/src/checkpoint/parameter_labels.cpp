#include "checkpoint/parameter_labels.hpp"

#include <set>

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

namespace troupe::train {

std::vector<std::vector<std::string>> parameter_labels(const torch::optim::Optimizer& optimizer,
                                                       const ParameterNames& names) {
  std::vector<std::vector<std::string>> labels;
  std::set<std::string> known;
  for (const auto& group : optimizer.param_groups()) {
    auto& own = labels.emplace_back();
    for (const auto& parameter : group.params()) {
      const auto name = names.find(parameter.unsafeGetTensorImpl());
      auto label = name != names.end() ? name->second : std::string();
      if (label.empty() || !known.insert(label).second)
        label += fmt::format("#{}.{}", labels.size() - 1, own.size());
      own.push_back(std::move(label));
    }
  }
  return labels;
}

}  // namespace troupe::train
