#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <troupe/tune/detail/search.hpp>

#include "experiment/journal_lines.hpp"

/// Whether and how an earlier run is gone on with: what people are told of it, and why it is refused.
namespace troupe::tune::detail {

/// What the first line of the experiment's journal says of its search.
std::string header_of(const Experiment& experiment);

/// Whether the run in `folder` has nothing left, by its journal. One that cannot be gone on with has:
/// who takes it up is told why not. Never throws.
bool is_over_by_journal(const Plan& plan, const std::filesystem::path& folder);

/// What a new run says of the one before it.
std::string not_gone_on_with(const std::filesystem::path& earlier,
                             const std::filesystem::path& folder, bool counts_trials);
/// What is said of an earlier run, once its events are applied.
std::string how_it_is_taken_up(const Experiment& experiment, const std::filesystem::path& folder,
                               Seconds now);
/// What somebody may do who has a run that was begun with other options.
std::string instead_of_going_on(const Plan& plan, bool has_same_objectives);
/// Whether the search of this header can learn what the run found that `journal` is of.
bool has_same_objectives(std::string_view journal, const std::string& header);

/// Throws std::invalid_argument where the experiment's scheduler can be given no more trials than the
/// run had that `journal` is of.
void refuse_more_trials(const Experiment& experiment, std::string_view journal,
                        const std::string& header);
/// Throws std::runtime_error.
[[noreturn]] void refuse_damaged(const std::filesystem::path& folder, const DamagedLine& damaged);
/// Throws std::runtime_error.
[[noreturn]] void refuse_other_version(const std::filesystem::path& folder,
                                       const OtherVersion& other, const Plan& plan);

}  // namespace troupe::tune::detail
