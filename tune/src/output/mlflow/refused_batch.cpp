#include "output/mlflow/refused_batch.hpp"

#include <cassert>
#include <iterator>
#include <utility>

namespace troupe::tune {
namespace {

Texts texts_under(const Texts& texts, EntityName::Kind kind, const std::set<EntityName>& names) {
  Texts part;
  for (const auto& text : texts) {
    if (names.contains({kind, text.first})) part.push_back(text);
  }
  return part;
}

/// What the batch tells under these names.
MlflowRequest part_of(const MlflowRequest& batch, const std::set<EntityName>& names) {
  MlflowRequest part{.kind = batch.kind,
                     .run = batch.run,
                     .params = texts_under(batch.params, EntityName::Kind::Param, names),
                     .tags = texts_under(batch.tags, EntityName::Kind::Tag, names)};
  for (const auto& report : batch.reports) {
    auto part_report = report;
    std::erase_if(part_report.metrics, [&](const auto& metric) {
      return !names.contains({EntityName::Kind::Metric, metric.name});
    });
    if (!part_report.metrics.empty()) part.reports.push_back(std::move(part_report));
  }
  return part;
}

}  // namespace

RefusedBatch::RefusedBatch(const MlflowRequest& batch)
    : last_report_{batch.reports.empty() ? 0 : batch.reports.back().number} {
  split(batch);
}

void RefusedBatch::split(const MlflowRequest& batch) {
  const auto names = names_in(batch);
  assert(names.size() > 1);
  const auto middle = std::next(names.begin(), static_cast<std::ptrdiff_t>(names.size() / 2));
  parts_.push_back(part_of(batch, {middle, names.end()}));
  parts_.push_back(part_of(batch, {names.begin(), middle}));
}

MlflowRequest RefusedBatch::next() {
  assert(!is_done());
  auto part = std::move(parts_.back());
  parts_.pop_back();
  return part;
}

void RefusedBatch::on_taken() { is_taken_in_part_ = true; }

std::size_t RefusedBatch::on_refused(const MlflowRequest& part) {
  const auto names = names_in(part);
  if (names.size() > 1) {
    split(part);
    return 0;
  }
  refused_names_.insert(names.begin(), names.end());
  auto given_up = values_in(part);
  if (!is_taken_in_part_ && refused_names_.size() >= kMostAlone) {
    given_up += values();
    parts_.clear();
  }
  return given_up;
}

void RefusedBatch::put_back(MlflowRequest part) { parts_.push_back(std::move(part)); }

std::size_t RefusedBatch::values() const {
  std::size_t values = 0;
  for (const auto& part : parts_) values += values_in(part);
  return values;
}

}  // namespace troupe::tune
