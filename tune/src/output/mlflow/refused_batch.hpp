#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "output/mlflow/request.hpp"

namespace troupe::tune {

/// A batch of metrics, parameters and tags that an MLflow server refused as a whole, since it takes
/// all of a request or nothing. It is told again in parts, so that a name which the server refuses
/// costs only what has that name. A value, used by its Outbox.
///
///   refused batch -> half of its names -> ... -> one name: taken, or refused alone
///
/// 1. Each value is in one part that is taken, or is refused alone.
/// 2. Parts have the values of a name in their order.
/// 3. A batch of n names takes 2n - 2 requests at most. Where the first `kMostAlone` names are all
///    refused, the server refuses more than names, and the rest counts as refused.
class RefusedBatch {
 public:
  static constexpr std::size_t kMostAlone = 16;

  /// Whether there is anything to tell apart in it.
  static bool has_parts(const MlflowRequest& batch) { return names_in(batch).size() > 1; }

  /// `batch`: it has parts.
  explicit RefusedBatch(const MlflowRequest& batch);

  /// The next part, which waits for one of the three below; its body is empty. There is one until
  /// is_done().
  MlflowRequest next();
  void on_taken();
  /// -> how many values are given up with it.
  std::size_t on_refused(const MlflowRequest& part);
  /// It was not answered.
  void put_back(MlflowRequest part);

  bool is_done() const { return parts_.empty(); }
  bool is_taken_in_part() const { return is_taken_in_part_; }
  /// Number of the last report in it.
  std::uint64_t last_report() const { return last_report_; }
  /// Those that were refused alone.
  const std::set<EntityName>& refused_names() const { return refused_names_; }
  /// That wait in it.
  std::size_t values() const;

 private:
  void split(const MlflowRequest& batch);

  std::vector<MlflowRequest> parts_;  // the next one is the last
  std::uint64_t last_report_ = 0;
  bool is_taken_in_part_ = false;
  std::set<EntityName> refused_names_;
};

}  // namespace troupe::tune
