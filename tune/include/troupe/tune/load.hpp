#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include <troupe/tune/results.hpp>

namespace troupe::tune {

namespace detail {
/// What the run in `folder` has come to. Throws as load().
Outcome loaded(const std::filesystem::path& folder);
/// Throws std::invalid_argument, which names the folder and says what to do.
[[noreturn]] void refuse_loaded(const std::filesystem::path& folder, const std::string& why);

template <class Config>
Results<Config> results_of(Outcome outcome, const Config& base) {
  const auto folder = outcome.folder;
  try {
    return {std::move(outcome), base};
  } catch (const std::invalid_argument& other) {
    refuse_loaded(folder, other.what());
  }
}
}  // namespace detail

/// The results of an earlier run by its folder alone, without the program that ran it: of tune::run or
/// of `troupe tune`, of one that is over, that was killed, or that goes on meanwhile.
///
///   const auto earlier = tune::load<Config>("results/run-1");
///   const auto results = tune::run<train>({..., .known = earlier.known(), .searcher = tune::tpe()});
///
/// `folder`: the run's, or the one in which it is run-N; of several the highest N. `base`: the fields
/// of each configuration that the run did not search; without it they have what `.config` gave the
/// trial, where the run's folder says so and Config can still hold that, else their defaults. What
/// runs still is Running in its trials, and so is what ran when a run was killed. Writes nothing;
/// needs no cluster. Any thread.
/// Throws std::runtime_error, with the file, where there is no run or it can not be read, and
/// std::invalid_argument where it searched a field that Config does not have. Cost: linear in the
/// length of the run's journal and its snapshot.
template <class Config>
Results<Config> load(const std::filesystem::path& folder, const Config& base) {
  if constexpr (!detail::kIsConfiguration<Config>) {
    std::abort();  // the compiler has said why, and no program comes of it
  } else {
    auto outcome = detail::loaded(folder);
    outcome.earlier.clear();
    return detail::results_of(std::move(outcome), base);
  }
}
template <class Config>
Results<Config> load(const std::filesystem::path& folder) {
  if constexpr (!detail::kIsConfiguration<Config>) {
    std::abort();
  } else {
    auto outcome = detail::loaded(folder);
    const auto base = with_unsearched(Config{}, outcome.unsearched);
    return detail::results_of(std::move(outcome), base);
  }
}

}  // namespace troupe::tune
