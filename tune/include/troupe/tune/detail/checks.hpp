#pragma once

#include <filesystem>
#include <string>

#include <troupe/tune/mlflow.hpp>

/// What `troupe tune` asks about a run's surroundings without running it. Any thread.
namespace troupe::tune::detail {

/// Throws std::invalid_argument, saying what is wrong, for a server that cannot be one. Asks no
/// server.
void check(const Mlflow& mlflow);

/// Throws std::runtime_error, as a run would, where none can make its folder in `storage`. Makes
/// folders for that, and removes them.
void check_storage(const std::filesystem::path& storage);

/// The last run in `storage`; empty: there is none.
std::filesystem::path last_run_in(const std::filesystem::path& storage);

/// Who runs the run in `folder` at the moment, for people: "process 7 on w1"; empty: nobody. Holds
/// the folder's lock for the time of one system call, if it is free.
std::string holder_of(const std::filesystem::path& folder);

}  // namespace troupe::tune::detail
