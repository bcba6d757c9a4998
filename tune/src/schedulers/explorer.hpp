#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <troupe/tune/schedulers/pbt.hpp>

#include "text/json.hpp"

namespace troupe::tune {

/// How a population changes the configuration that a member takes over, and what it learns for that.
/// Pure; owned by its Pbt, which calls it. Values are scores: higher is better, minus infinity where
/// they are not finite.
class Explorer {
 public:
  /// What a member goes on from.
  struct From {
    const Configuration& config;  ///< the donor's
    std::int64_t t = 0;           ///< when the donor was judged
    double score = 0;             ///< which it had then
  };

  virtual ~Explorer() = default;

  /// Of the scheduler, as a program writes it: "pbt".
  virtual std::string_view name() const = 0;
  /// The member `trial` goes on from there, with what is returned. Draw number `draw` of the
  /// population.
  virtual Configuration explored(TrialId trial, const From& from, std::uint64_t draw) = 0;
  /// The member has reported the metric.
  virtual void on_report(TrialId /*trial*/, std::int64_t /*t*/, double /*score*/) {}
  /// It was judged at that report, after on_report, having trained with `config`.
  virtual void on_judged(TrialId /*trial*/, const Configuration& /*config*/, std::int64_t /*t*/,
                         double /*score*/) {}
  /// Nothing comes of what the member was to go on with, or the member is over.
  virtual void forget(TrialId /*trial*/) {}

  /// What tells this explorer from others, and what it has learned; null: nothing.
  virtual Json identity() const { return {}; }
  virtual Json save() const { return {}; }
  /// Throws std::invalid_argument or Json::exception where save() wrote something else; changes
  /// nothing then.
  virtual void load(const Json& /*saved*/) {}
};

/// That of pbt.hpp, rule 4.
std::unique_ptr<Explorer> factor_explorer(const PbtOptions& options, std::uint64_t seed);

/// Throws std::invalid_argument, with the scheduler's name, for what Pbt's constructor refuses.
void check(const PbtOptions& options, std::string_view scheduler);

}  // namespace troupe::tune
