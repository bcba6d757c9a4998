#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "output/mlflow/outbox.hpp"

/// What answers an outbox in tests of it, without a socket.
namespace troupe::tune {

inline const WallTime kNoon{Seconds(1.7e9)};

/// Takes what a server would.
inline Json content_for(const Outbox::Request& request, int id = 7) {
  if (request.kind == Outbox::Request::Kind::FindExperiment)
    return {{"experiment", {{"experiment_id", "1"}}}};
  if (request.kind == Outbox::Request::Kind::CreateRun)
    return {{"run", {{"info", {{"run_id", "run" + std::to_string(id)}}}}}};
  return Json::object();
}

inline Json take(Outbox& outbox, const Outbox::Request& request) {
  return outbox.answered(request, {Outbox::Answer::Kind::Taken, content_for(request), {}});
}

/// A trial's run that the server knows, with nothing left to tell.
inline Outbox with_run(std::size_t most_waiting) {
  Outbox outbox("digits", most_waiting);
  outbox.begin_run({}, "search", kNoon, {}, {});
  outbox.begin_run(0, "trial 0", kNoon, {}, {});
  while (const auto request = outbox.next()) take(outbox, *request);
  return outbox;
}

/// A server that refuses whole requests for a name in them, and sometimes does not answer.
class Refusing {
 public:
  explicit Refusing(std::set<std::string> names, std::optional<unsigned> seed = {})
      : names_{std::move(names)}, is_silent_{seed.has_value()}, random_{seed.value_or(0)} {}

  /// -> what the outbox had written down.
  std::vector<Json> take_all(Outbox& outbox) {
    std::vector<Json> lines;
    while (!outbox.is_empty()) {
      if (auto request = outbox.next()) asked_.push_back(*std::move(request));
      REQUIRE_FALSE(asked_.empty());
      if (auto line = answer_one(outbox); !line.is_null()) lines.push_back(std::move(line));
    }
    return lines;
  }
  /// Some of what it is asked, in any order.
  void answer_some(Outbox& outbox) {
    if (auto request = outbox.next()) asked_.push_back(*std::move(request));
    while (!asked_.empty() && random_() % 2 == 0) answer_one(outbox);
  }
  /// Steps of a metric; 0: of a parameter or a tag.
  std::vector<std::int64_t> told(RunKey run, const std::string& name) { return told_[{run, name}]; }
  int batches() const { return batches_; }

 private:
  Json answer_one(Outbox& outbox) {
    const auto at = asked_.begin() + static_cast<std::ptrdiff_t>(random_() % asked_.size());
    const auto request = *at;
    asked_.erase(at);
    if (is_silent_ && random_() % 4 == 0) return outbox.answered(request, {});
    if (request.kind != Outbox::Request::Kind::Log) return take(outbox, request);
    ++batches_;
    const auto body = Json::parse(request.body);
    for (const auto* list : {"metrics", "params", "tags"}) {
      for (const auto& each : body.at(list)) {
        if (names_.contains(each.at("key")))
          return outbox.answered(request,
                                 {Outbox::Answer::Kind::Refused, {}, "INVALID_PARAMETER_VALUE"});
      }
    }
    for (const auto* list : {"metrics", "params", "tags"}) {
      for (const auto& each : body.at(list))
        told_[{request.run, each.at("key")}].push_back(each.value("step", std::int64_t{0}));
    }
    return take(outbox, request);
  }

  std::set<std::string> names_;
  bool is_silent_;
  std::mt19937 random_;
  std::vector<Outbox::Request> asked_;
  std::map<std::pair<RunKey, std::string>, std::vector<std::int64_t>> told_;
  int batches_ = 0;
};

}  // namespace troupe::tune
