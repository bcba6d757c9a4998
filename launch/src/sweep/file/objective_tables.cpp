#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/tune.hpp>
#include <troupe/tune/detail/search.hpp>
#include <troupe/tune/detail/sweep_keys.hpp>

#include "sweep/file/search_tables.hpp"

namespace troupe::launch {
namespace {

tune::Mode mode_in(TomlTable& table) {
  const auto mode = table.text("mode").value_or("min");
  if (mode != "min" && mode != "max") table.refuse("mode", "is \"min\" or \"max\"");
  return mode == "min" ? tune::Min : tune::Max;
}

/// [{ metric = "loss" }, { metric = "accuracy", mode = "max" }]
std::vector<tune::Objective> objectives_in(TomlTable& file) {
  std::vector<tune::Objective> objectives;
  for (auto& table : file.tables("objectives")) {
    objectives.push_back({table.text("metric").value_or(""), mode_in(table)});
    table.finish();
  }
  return objectives;
}

/// [{ metric = "memory", at_most = 8 }]
std::vector<tune::Constraint> constraints_in(TomlTable& file) {
  std::vector<tune::Constraint> constraints;
  for (auto& table : file.tables("constraints")) {
    const auto metric = table.text("metric").value_or("");
    const auto most = table.number("at_most"), least = table.number("at_least");
    if (bool(most) == bool(least))
      file.refuse("constraints",
                  "has an entry that needs one limit, at_most or at_least: "
                  "[{ metric = \"memory\", at_most = 8 }]");
    constraints.push_back({metric, most ? tune::AtMost : tune::AtLeast, most ? *most : *least});
    table.finish();
  }
  return constraints;
}

}  // namespace

void read_objectives(TomlTable& file, tune::detail::Plan& plan) {
  const auto metric = file.text("metric").value_or("");
  const auto mode = mode_in(file);
  auto objectives = objectives_in(file);
  plan.constraints = constraints_in(file);
  if (metric.empty() && objectives.empty()) {
    file.refuse_missing("metric",
                        "is missing: the name of what trials report, metric = \"loss\", or of "
                        "several, objectives = [{ metric = \"loss\" }, { metric = \"latency\" }]");
  }
  const char* named = "objectives";
  try {
    plan.objectives = tune::detail::objectives_of(metric, mode, objectives);
    plan.objective = plan.objectives.front();
    if (plan.objectives.size() == 1) plan.objectives.clear();
    named = "constraints";
    tune::detail::check_constraints(plan.constraints, plan.objectives.size());
  } catch (const std::invalid_argument& refused) {
    file.refuse(named, "cannot be: " + tune::detail::with_sweep_keys(refused.what()));
  }
}

}  // namespace troupe::launch
