#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <troupe/tune/detail/search.hpp>

#include "experiment/journal_lines.hpp"

/// The sentences about an earlier run: how it is resumed, and why it is not.
namespace troupe::tune::detail {

/// What a new run says of the one before it.
std::string not_gone_on_with(const std::filesystem::path& earlier,
                             const std::filesystem::path& folder, bool counts_trials);
/// What is said of an earlier run, once its events are applied.
std::string how_it_is_resumed(const Experiment& experiment, const std::filesystem::path& folder,
                              Seconds now);
/// What somebody may do who has a run that was begun with other options.
std::string instead_of_going_on(const Plan& plan, bool has_same_objectives);

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
