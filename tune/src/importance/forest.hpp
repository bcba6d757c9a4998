#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/tune/random.hpp>

namespace troupe::tune {

/// One field of a regression forest: where each sample lies on it. A number is a coordinate in
/// [0, 1]; a category is one of 0, 1, ..., categories - 1. A value.
struct ForestField {
  std::vector<double> values = {};  ///< of each sample
  std::size_t categories = 0;       ///< 0: it is a number
};

/// A node of a tree: a leaf, or a split of its box in two. A value.
struct TreeNode {
  static constexpr std::size_t kNone = SIZE_MAX;

  double value = 0;           ///< the mean of its samples
  std::size_t field = kNone;  ///< that it splits; kNone: it is a leaf
  /// Of a number: samples up to this one go to `first`. Of a category: samples of this one do.
  double at = 0;
  std::size_t first = kNone;
  std::size_t second = kNone;

  bool is_leaf() const { return field == kNone; }
};
/// The root first, each node before its children. Never empty.
using Tree = std::vector<TreeNode>;

struct ForestOptions {
  std::size_t trees = 64;
  std::size_t max_depth = 64;
  /// Samples that are drawn for each tree, with repetition: as many as there are, but no more.
  std::size_t most_draws = 10'000;
  std::uint64_t seed = 0;
};

/// A random forest for regression (Breiman, 2001, "Random forests"): each tree is grown from a
/// bootstrap sample until its leaves are pure (CART: Breiman, Friedman, Olshen and Stone, 1984,
/// section 8.4). Each split is the one, of all fields, that lowers the squared error most; the
/// threshold of a number lies in the middle between two samples, a category is divided from all
/// others. Among equally good splits that of a random field is taken, as small nodes have many.
///
/// A value for each sample, all finite, and of a size that squares can be summed of. Asserts that
/// there is a field and a sample. A pure function: the same arguments give the same trees on every
/// machine. Cost: O(trees * fields * draws * depth), and O(draws) for sorting.
std::vector<Tree> grown_forest(const std::vector<ForestField>& fields,
                               std::span<const double> values, const ForestOptions& options);

/// What the forest expects at a point, a value for each field: the mean over its trees.
double prediction(std::span<const Tree> forest, const std::vector<ForestField>& fields,
                  std::span<const double> point);

}  // namespace troupe::tune
