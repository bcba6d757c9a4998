#include "importance/fanova.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace troupe::tune {
namespace {

/// The part of the space that a node stands for. A value.
struct Box {
  struct Side {
    double low = 0, high = 1;    // of a number
    std::vector<bool> has = {};  // of each category
    std::size_t left = 0;        // categories that it has
    double length(std::size_t categories) const {
      return categories > 0 ? static_cast<double>(left) / static_cast<double>(categories)
                            : high - low;
    }
  };
  std::vector<Side> sides = {};
};

/// The mean of a tree over all fields but one, as a function of that one: constant on each of some
/// pieces. Filled leaf by leaf, then asked.
class FieldMarginal {
 public:
  /// `cuts`: the thresholds of a number.
  FieldMarginal(std::size_t categories, std::vector<double> cuts)
      : categories_{categories}, cuts_{std::move(cuts)} {
    std::ranges::sort(cuts_);
    const auto same = std::ranges::unique(cuts_);
    cuts_.erase(same.begin(), same.end());
    changes_.resize(categories_ > 0 ? categories_ : cuts_.size() + 2);
  }

  /// A leaf with this side holds `share` of the other fields.
  void add(const Box::Side& side, double value, double share) {
    if (categories_ == 0) {
      changes_[piece_at(side.low)] += value * share;
      changes_[side.high < 1 ? piece_at(side.high) : cuts_.size() + 1] -= value * share;
      return;
    }
    for (std::size_t i = 0; i < categories_; ++i) {
      if (side.has[i]) changes_[i] += value * share;
    }
  }

  /// Around the tree's mean.
  double variance(double mean) const {
    double sum = 0, value = 0;
    const auto pieces = categories_ > 0 ? categories_ : cuts_.size() + 1;
    for (std::size_t i = 0; i < pieces; ++i) {
      value = categories_ > 0 ? changes_[i] : value + changes_[i];
      sum += length(i) * (value - mean) * (value - mean);
    }
    return sum;
  }

 private:
  /// The piece that begins there.
  std::size_t piece_at(double cut) const {
    if (cut <= 0) return 0;
    return static_cast<std::size_t>(std::ranges::lower_bound(cuts_, cut) - cuts_.begin()) + 1;
  }
  double length(std::size_t piece) const {
    if (categories_ > 0) return 1 / static_cast<double>(categories_);
    const double low = piece == 0 ? 0 : cuts_[piece - 1];
    return (piece == cuts_.size() ? 1 : cuts_[piece]) - low;
  }

  std::size_t categories_;
  std::vector<double> cuts_;
  std::vector<double>
      changes_;  // by piece: of a number to the value before, of a category the value
};

std::vector<FieldMarginal> empty_marginals(const Tree& tree,
                                           const std::vector<ForestField>& fields) {
  std::vector<std::vector<double>> cuts(fields.size());
  for (const auto& node : tree) {
    if (!node.is_leaf() && fields[node.field].categories == 0) cuts[node.field].push_back(node.at);
  }
  std::vector<FieldMarginal> marginals;
  for (std::size_t i = 0; i < fields.size(); ++i)
    marginals.emplace_back(fields[i].categories, std::move(cuts[i]));
  return marginals;
}

/// Walks over the leaves of a tree with their boxes.
class Walk {
 public:
  struct Leaf {
    double value = 0;
    double volume = 0;
  };

  Walk(const Tree& tree, const std::vector<ForestField>& fields)
      : tree_{&tree}, fields_{&fields}, marginals_{empty_marginals(tree, fields)} {
    for (const auto& field : fields) {
      box_.sides.push_back(
          {.has = std::vector<bool>(field.categories, true), .left = field.categories});
    }
    visit(tree.front());
  }

  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<FieldMarginal>& marginals() const { return marginals_; }

 private:
  /// As deep as the tree is.
  void visit(const TreeNode& node) {
    if (node.is_leaf()) return visit_leaf(node);
    auto& side = box_.sides[node.field];
    if ((*fields_)[node.field].categories > 0) {
      auto whole = side;
      const auto category = static_cast<std::size_t>(node.at);
      side.has.assign(side.has.size(), false);
      side.has[category] = true;
      side.left = 1;
      visit((*tree_)[node.first]);
      side = whole;
      side.has[category] = false;
      --side.left;
      visit((*tree_)[node.second]);
      side = std::move(whole);
      return;
    }
    visit_between((*tree_)[node.first], node.field, side.low, node.at);
    visit_between((*tree_)[node.second], node.field, node.at, side.high);
  }

  void visit_between(const TreeNode& node, std::size_t field, double low, double high) {
    auto& side = box_.sides[field];
    const double low_before = std::exchange(side.low, low);
    const double high_before = std::exchange(side.high, high);
    visit(node);
    side.low = low_before;
    side.high = high_before;
  }

  void visit_leaf(const TreeNode& leaf) {
    double volume = 1;
    for (std::size_t i = 0; i < fields_->size(); ++i)
      volume *= box_.sides[i].length((*fields_)[i].categories);
    leaves_.push_back({leaf.value, volume});
    if (!(volume > 0)) return;
    for (std::size_t i = 0; i < fields_->size(); ++i) {
      const auto& side = box_.sides[i];
      marginals_[i].add(side, leaf.value, volume / side.length((*fields_)[i].categories));
    }
  }

  const Tree* tree_;
  const std::vector<ForestField>* fields_;
  Box box_;
  std::vector<Leaf> leaves_;
  std::vector<FieldMarginal> marginals_;
};

/// To [0, 1], halved on the way so that no difference overflows; empty where all are equal.
std::vector<double> scaled(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [low, high] = std::ranges::minmax(values);
  const double range = high / 2 - low / 2;
  if (!(range > 0)) return {};
  std::vector<double> all;
  for (const double value : values) all.push_back((value / 2 - low / 2) / range);
  return all;
}

}  // namespace

std::vector<double> parts_of_tree(const Tree& tree, const std::vector<ForestField>& fields) {
  const Walk walk(tree, fields);
  double mean = 0, variance = 0;
  for (const auto& [value, volume] : walk.leaves()) mean += volume * value;
  for (const auto& [value, volume] : walk.leaves())
    variance += volume * (value - mean) * (value - mean);
  std::vector<double> parts;
  for (const auto& marginal : walk.marginals()) {
    const double part = variance > 0 ? marginal.variance(mean) / variance : 0;
    parts.push_back(std::min(part, 1.0));  // rounding
  }
  return parts;
}

std::vector<double> fanova(const std::vector<ForestField>& fields, std::span<const double> values,
                           const ForestOptions& options) {
  std::vector<double> parts(fields.size());
  const auto targets = scaled(values);
  if (fields.empty() || targets.empty()) return parts;
  std::size_t counted = 0;
  for (const auto& tree : grown_forest(fields, targets, options)) {
    if (tree.front().is_leaf()) continue;
    const auto of_tree = parts_of_tree(tree, fields);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] += of_tree[i];
    ++counted;
  }
  for (auto& part : parts) part /= static_cast<double>(std::max<std::size_t>(counted, 1));
  return parts;
}

}  // namespace troupe::tune
