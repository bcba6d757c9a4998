#include <troupe/tune/searchers/own.hpp>

#include <exception>
#include <map>
#include <stdexcept>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "searchers/saved_search.hpp"
#include "searchers/trial_end_json.hpp"

namespace troupe::tune {
namespace {

/// What the search was asked or told. All calls in their order are its state.
struct Call {
  enum class Kind : std::uint8_t { Asked, Given, Told };
  Kind kind = Kind::Asked;
  TrialId trial = 0;
  Configuration config = {};  ///< of Asked and Given
  TrialEnd end = {};          ///< of Told
};

Json saved_call(const Call& call) {
  if (call.kind == Call::Kind::Told) return {{"told", call.trial}, {"end", to_json(call.end)}};
  const auto* name = call.kind == Call::Kind::Asked ? "asked" : "given";
  return {{name, call.trial}, {"config", to_json(call.config)}};
}

Call call_from(const Json& json) {
  if (json.contains("told"))
    return {.kind = Call::Kind::Told,
            .trial = json.at("told").get<TrialId>(),
            .end = trial_end_from(json.at("end"))};
  const bool is_asked = json.contains("asked");
  return {.kind = is_asked ? Call::Kind::Asked : Call::Kind::Given,
          .trial = json.at(is_asked ? "asked" : "given").get<TrialId>(),
          .config = configuration_from(json.at("config"))};
}

class RecordedCalls final : public Searcher {
 public:
  RecordedCalls(std::string name, MakeOwnSearch make, const SearchSetup& setup)
      : name_{std::move(name)},
        make_{std::move(make)},
        setup_{std::make_shared<SearchSetup>(setup)},
        search_{made()} {}

  Suggestion suggest(TrialId trial) override;
  void give(TrialId trial, const Configuration& configuration) override {
    running_[trial] = configuration;
    calls_.push_back({.kind = Call::Kind::Given, .trial = trial, .config = configuration});
  }
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override { return setup_->trials; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  template <class Function>
  auto call(std::string_view what, const Function& function);
  std::unique_ptr<OwnSearch> made();
  void check(const Configuration& config) const;
  void repeat(const Call& call, std::uint64_t trials);

  bool has_failed_ = false;  // it threw, and is called no more
  std::string name_;
  MakeOwnSearch make_;
  std::shared_ptr<const SearchSetup> setup_;  // stays where it is: the search may refer to it
  std::unique_ptr<OwnSearch> search_;
  std::vector<Call> calls_ = {};
  std::map<TrialId, Configuration> running_ = {};
};

/// Calls the user's code, whose exceptions would else come from nowhere.
template <class Function>
auto RecordedCalls::call(std::string_view what, const Function& function) {
  try {
    return function();
  } catch (const std::exception& thrown) {
    has_failed_ = true;
    std::throw_with_nested(std::runtime_error(
        fmt::format("tune: the searcher '{}' threw as it was {}: {}", name_, what, thrown.what())));
  } catch (...) {
    has_failed_ = true;
    throw std::runtime_error(fmt::format(
        "tune: the searcher '{}' threw something that is no std::exception as it was {}", name_,
        what));
  }
}

std::unique_ptr<OwnSearch> RecordedCalls::made() {
  auto search = call("made", [&] { return make_(*setup_); });
  if (!search)
    throw std::invalid_argument(fmt::format("tune: the searcher '{}' was made as nullptr", name_));
  return search;
}

void RecordedCalls::check(const Configuration& config) const {
  const auto refuse = [&](const std::string& what) {
    throw std::logic_error(fmt::format(
        "tune: the searcher '{}' answered '{}': {}; ask() gives each field of the space a value of "
        "its domain, in the order of the space",
        name_, to_string(config), what));
  };
  for (std::size_t i = 0; i < setup_->space.size(); ++i) {
    const auto& [name, domain] = setup_->space[i];
    if (i >= config.size() || config[i].first != name)
      refuse(fmt::format("field '{}' is not at place {}", name, i));
    if (!domain.contains(config[i].second))
      refuse(fmt::format("field '{}' is not in {}", name, to_string(domain)));
  }
  if (config.size() > setup_->space.size())
    refuse(fmt::format("field '{}' is not in the space", config[setup_->space.size()].first));
}

Suggestion RecordedCalls::suggest(TrialId trial) {
  if (has_failed_ || trial >= setup_->trials) return NoMore{};
  Random random(setup_->seed, trial, "own_searcher");
  auto suggestion =
      call(fmt::format("asked for trial {}", trial), [&] { return search_->ask(random); });
  if (const auto* config = std::get_if<Configuration>(&suggestion)) {
    check(*config);
    running_[trial] = *config;
    calls_.push_back({.kind = Call::Kind::Asked, .trial = trial, .config = *config});
  }
  return suggestion;
}

void RecordedCalls::on_end(TrialId trial, const TrialEnd& end) {
  const auto at = running_.extract(trial);
  if (!at || has_failed_) return;
  call(fmt::format("told how trial {} ended", trial), [&] { search_->tell(at.mapped(), end); });
  calls_.push_back({.kind = Call::Kind::Told, .trial = trial, .end = end});
}

std::string RecordedCalls::save() const {
  auto json = search_identity(name_, *setup_);
  auto& calls = json["calls"] = Json::array();
  for (const auto& call : calls_) calls.push_back(saved_call(call));
  return dump(json);
}

/// `trials`: for which the search was made that was called before.
void RecordedCalls::repeat(const Call& call, std::uint64_t trials) {
  if (call.kind == Call::Kind::Given) return give(call.trial, call.config);
  if (call.kind == Call::Kind::Told) return on_end(call.trial, call.end);
  const auto answer = suggest(call.trial);
  const auto* config = std::get_if<Configuration>(&answer);
  if (config && to_json(*config) == to_json(call.config)) return;
  throw std::invalid_argument(fmt::format(
      "the searcher '{}' answered '{}' for trial {} before, and now {}: {}", name_,
      to_string(call.config), call.trial,
      config ? "'" + to_string(*config) + "'" : std::string("nothing"),
      trials == setup_->trials
          ? "what it asks for must depend on its setup, what it was told and its random numbers "
            "alone"
          : fmt::format("it was made for {} trials then and for {} now; what it asks for must not "
                        "depend on their number where a run is to get more of them",
                        trials, setup_->trials)));
}

void RecordedCalls::load(std::string_view saved) {
  load_search(saved, search_identity(name_, *setup_), [&](const Json& json) {
    RecordedCalls loaded(name_, make_, *setup_);
    const auto trials = json.value("trials", setup_->trials);
    for (const auto& each : json.at("calls")) loaded.repeat(call_from(each), trials);
    *this = std::move(loaded);
  });
}

}  // namespace

SearcherFactory own_searcher(std::string name, MakeOwnSearch make) {
  if (name.empty() || !make)
    throw std::invalid_argument("tune::own_searcher: it needs a name and a function that makes it");
  return [name = std::move(name), make = std::move(make)](const SearchSetup& setup) {
    require_trials(fmt::format("the searcher '{}'", name), setup);
    return std::make_unique<RecordedCalls>(name, make, setup);
  };
}

}  // namespace troupe::tune
