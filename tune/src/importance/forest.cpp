#include "importance/forest.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <utility>

namespace troupe::tune {
namespace {

/// How much better a split has to be than another one: less is rounding.
constexpr double kBetter = 1 + 1e-9;

struct Split {
  std::size_t field = TreeNode::kNone;
  double at = 0;
  double gain = 0;  // by how much it lowers the sum of squared errors
};

/// Grows one tree. Each field has the drawn samples in the order of their values, and a node is the
/// same stretch of all these orders, so that sorting is done once.
class Grower {
 public:
  Grower(const std::vector<ForestField>& fields, std::span<const double> values,
         const std::vector<std::vector<std::uint32_t>>& sorted, const ForestOptions& options,
         Random random)
      : fields_{&fields}, values_{values}, max_depth_{options.max_depth}, random_{random} {
    const auto draws = std::min(values.size(), options.most_draws);
    times_.resize(values.size());
    for (std::size_t i = 0; i < draws; ++i) ++times_[random_.below(values.size())];
    for (const auto& all : sorted) {
      auto& order = orders_.emplace_back();
      std::ranges::copy_if(all, std::back_inserter(order),
                           [&](std::uint32_t sample) { return times_[sample] > 0; });
    }
    goes_first_.resize(values.size());
    shuffled_.resize(fields.size());
    std::iota(shuffled_.begin(), shuffled_.end(), std::size_t{0});
  }

  Tree grown() {
    struct Open {
      std::size_t node, begin, end, depth;
    };
    tree_.emplace_back();
    std::vector<Open> open{{0, 0, orders_.front().size(), 0}};
    while (!open.empty()) {
      const auto [node, begin, end, depth] = open.back();
      open.pop_back();
      const auto split = best_split(node, begin, end, depth);
      if (!split) continue;
      const auto middle = divide(*split, begin, end);
      tree_[node].field = split->field;
      tree_[node].at = split->at;
      tree_[node].first = tree_.size();
      tree_[node].second = tree_.size() + 1;
      open.push_back({tree_.size(), begin, middle, depth + 1});
      open.push_back({tree_.size() + 1, middle, end, depth + 1});
      tree_.resize(tree_.size() + 2);
    }
    return std::move(tree_);
  }

 private:
  /// Of some samples, each as often as it was drawn.
  struct Sums {
    double weight = 0, sum = 0;
    void add(double times, double value) {
      weight += times;
      sum += times * value;
    }
  };

  /// By how much the squared error falls where a node of mean 0 is divided into these and the rest.
  static double gain(const Sums& part, double weight) {
    return part.sum * part.sum * (1 / part.weight + 1 / (weight - part.weight));
  }

  /// None where the node is to be a leaf. Sets its value.
  std::optional<Split> best_split(std::size_t node, std::size_t begin, std::size_t end,
                                  std::size_t depth) {
    Sums all;
    const auto members = std::span(orders_.front()).subspan(begin, end - begin);
    for (const auto sample : members) all.add(times_[sample], values_[sample]);
    tree_[node].value = all.sum / all.weight;
    const auto is_equal = [&](auto sample) { return values_[sample] == values_[members[0]]; };
    if (depth >= max_depth_ || std::ranges::all_of(members, is_equal)) return std::nullopt;
    for (auto left = shuffled_.size(); left > 1; --left)
      std::swap(shuffled_[left - 1], shuffled_[random_.below(left)]);
    Split best;
    for (const auto field : shuffled_) {
      const auto order = std::span(orders_[field]).subspan(begin, end - begin);
      if ((*fields_)[field].categories > 0)
        try_categories(field, order, tree_[node].value, all.weight, best);
      else
        try_thresholds(field, order, tree_[node].value, all.weight, best);
    }
    if (best.field == TreeNode::kNone) return std::nullopt;
    return best;
  }

  void try_thresholds(std::size_t field, std::span<const std::uint32_t> order, double mean,
                      double weight, Split& best) const {
    const auto& at = (*fields_)[field].values;
    Sums below;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      below.add(times_[order[i]], values_[order[i]] - mean);
      const double low = at[order[i]], high = at[order[i + 1]];
      const double middle = low + (high - low) / 2;
      if (!(low <= middle && middle < high)) continue;  // the two are equal
      const double found = gain(below, weight);
      if (found > best.gain * kBetter) best = {field, middle, found};
    }
  }

  void try_categories(std::size_t field, std::span<const std::uint32_t> order, double mean,
                      double weight, Split& best) const {
    const auto& at = (*fields_)[field].values;
    for (std::size_t i = 0; i < order.size();) {
      const double category = at[order[i]];
      Sums its;
      for (; i < order.size() && at[order[i]] == category; ++i)
        its.add(times_[order[i]], values_[order[i]] - mean);
      if (its.weight == weight) return;
      const double found = gain(its, weight);
      if (found > best.gain * kBetter) best = {field, category, found};
    }
  }

  /// Brings the samples that go to the first child before the others, in all orders; -> where the
  /// others begin.
  std::size_t divide(const Split& split, std::size_t begin, std::size_t end) {
    const auto& [values, categories] = (*fields_)[split.field];
    std::size_t middle = begin;
    for (auto i = begin; i < end; ++i) {
      const auto sample = orders_.front()[i];
      const bool is_first =
          categories > 0 ? values[sample] == split.at : values[sample] <= split.at;
      goes_first_[sample] = is_first;
      middle += is_first ? 1 : 0;
    }
    for (auto& order : orders_) {
      const auto part = std::span(order).subspan(begin, end - begin);
      others_.clear();
      auto to = part.begin();
      for (const auto sample : part) {
        if (goes_first_[sample])
          *to++ = sample;
        else
          others_.push_back(sample);
      }
      std::ranges::copy(others_, to);
    }
    return middle;
  }

  const std::vector<ForestField>* fields_;
  std::span<const double> values_;
  std::size_t max_depth_;
  Random random_;
  std::vector<double> times_;                       // how often each sample was drawn
  std::vector<std::vector<std::uint32_t>> orders_;  // by field
  std::vector<bool> goes_first_;                    // by sample; of the node that is divided
  std::vector<std::uint32_t> others_;
  std::vector<std::size_t> shuffled_;  // fields
  Tree tree_;
};

}  // namespace

std::vector<Tree> grown_forest(const std::vector<ForestField>& fields,
                               std::span<const double> values, const ForestOptions& options) {
  assert(!fields.empty() && !values.empty());
  std::vector<std::vector<std::uint32_t>> sorted;
  for (const auto& field : fields) {
    assert(field.values.size() == values.size());
    auto& order = sorted.emplace_back(values.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return field.values[i]; });
  }
  std::vector<Tree> forest;
  for (std::size_t tree = 0; tree < options.trees; ++tree) {
    Grower grower(fields, values, sorted, options, Random(options.seed, tree, "tree"));
    forest.push_back(grower.grown());
  }
  return forest;
}

double prediction(std::span<const Tree> forest, const std::vector<ForestField>& fields,
                  std::span<const double> point) {
  assert(point.size() == fields.size());
  double sum = 0;
  for (const auto& tree : forest) {
    const auto* node = &tree.front();
    while (!node->is_leaf()) {
      const double at = point[node->field];
      const bool is_first = fields[node->field].categories > 0 ? at == node->at : at <= node->at;
      node = &tree[is_first ? node->first : node->second];
    }
    sum += node->value;
  }
  return sum / static_cast<double>(forest.size());
}

}  // namespace troupe::tune
