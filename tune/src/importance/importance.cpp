#include "importance/importance.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <troupe/tune/lineage.hpp>

#include "importance/fanova.hpp"
#include "importance/ped_anova.hpp"
#include "searchers/axis.hpp"

namespace troupe::tune {
namespace {

std::vector<const Trial*> with_value(const std::vector<Trial>& trials) {
  std::vector<const Trial*> counted;
  for (const auto& trial : trials) {
    if (is_candidate(trial)) counted.push_back(&trial);
  }
  return counted;
}

std::string warning_for(std::size_t trials) {
  if (trials < kLeastTrialsForImportance) {
    return fmt::format(
        "Trials with a value: {}. Below {} no importance of the fields is shown, as it would be "
        "chance.",
        trials, kLeastTrialsForImportance);
  }
  if (trials >= kTrustedTrialsForImportance) return {};
  return fmt::format(
      "Trials with a value: {}. Below {} these importances are uncertain: other trials of the same "
      "space may give quite different ones.",
      trials, kTrustedTrialsForImportance);
}

/// A coordinate on each axis, none where the trial does not have the field; nothing where a value is
/// outside of the space.
std::optional<std::vector<std::optional<double>>> point_of(const Axes& axes, const Trial& trial) {
  std::vector<std::optional<double>> point;
  const auto& config = config_of_best(trial);
  for (const auto& axis : axes) {
    auto& coordinate = point.emplace_back();
    const auto at = std::ranges::find(config, axis.name(), &Configuration::value_type::first);
    if (at == config.end()) continue;
    try {
      coordinate = axis.coordinate_of(at->second);
    } catch (const std::invalid_argument&) {
      return std::nullopt;
    }
  }
  return point;
}

/// By axis; none for one that a trial does not have. `inside`: how many trials it is of, whose values
/// are all in the space.
std::vector<std::optional<double>> fanova_of(const Axes& axes,
                                             const std::vector<const Trial*>& trials,
                                             std::size_t& inside) {
  std::vector<std::vector<std::optional<double>>> points;
  std::vector<double> values;
  for (const auto* trial : trials) {
    auto point = point_of(axes, *trial);
    if (!point) continue;
    points.push_back(std::move(*point));
    values.push_back(*trial->best);
  }
  inside = points.size();
  std::vector<std::optional<double>> parts(axes.size());
  if (points.size() < kLeastTrialsForImportance) return parts;
  std::vector<std::size_t> complete;  // axes
  std::vector<ForestField> fields;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto has_it = [i](const auto& point) { return point[i].has_value(); };
    if (!std::ranges::all_of(points, has_it)) continue;
    complete.push_back(i);
    auto& field = fields.emplace_back();
    const bool is_number = axes[i].is_number();
    if (!is_number) field.categories = static_cast<std::size_t>(axes[i].values());
    for (const auto& point : points) {
      const double at = *point[i];
      field.values.push_back(is_number ? at : static_cast<double>(axes[i].category_at(at)));
    }
  }
  const auto found = fanova(fields, values);
  for (std::size_t i = 0; i < complete.size(); ++i) parts[complete[i]] = found[i];
  return parts;
}

}  // namespace

Importance importance(const SearchSpace& space, const Objective& objective,
                      const std::vector<Trial>& trials) {
  const Axes axes(space);
  const auto counted = with_value(trials);
  Importance result{.trials = counted.size()};
  if (axes.size() == 0) {
    result.warning = "No field is searched, so that none has an importance.";
    return result;
  }
  result.warning = warning_for(counted.size());
  if (counted.size() < kLeastTrialsForImportance) return result;
  std::size_t inside = 0;
  const auto variance = fanova_of(axes, counted, inside);
  if (inside < counted.size()) {
    result.warning += fmt::format(
        "{}Of these trials {} have values outside of the space: fANOVA is of the other {}{}.",
        result.warning.empty() ? "" : " ", counted.size() - inside, inside,
        inside < kLeastTrialsForImportance ? ", which are too few for it" : "");
  }
  const auto best = ped_anova(axes, objective, counted, kLeastTrialsForImportance);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (variance[i] || best[i]) result.fields.push_back({axes[i].name(), variance[i], best[i]});
  }
  std::string left_out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!variance[i] && !best[i]) left_out += (left_out.empty() ? "" : ", ") + axes[i].name();
  }
  if (!left_out.empty()) {
    result.warning += fmt::format(
        "{}Too few trials have a value of these fields in the space to say how much they "
        "decide: {}.",
        result.warning.empty() ? "" : " ", left_out);
  }
  std::ranges::stable_sort(result.fields, std::greater{}, [](const FieldImportance& field) {
    return std::pair(field.fanova, field.ped_anova);
  });
  return result;
}

}  // namespace troupe::tune
