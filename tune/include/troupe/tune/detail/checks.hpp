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

/// What `troupe tune` writes into the folder of a run: the name of the sweep file that the run belongs
/// to, `file`, and what a trial runs, `command` and `env`.
inline constexpr const char* kProgramFile = "program.json";

/// The last run in `storage` that belongs to the sweep file of this name, or says of none that it
/// does; empty: there is no run. Throws std::runtime_error where all runs belong to other files.
std::filesystem::path last_run_in(const std::filesystem::path& storage,
                                  const std::string& sweep_file);

/// Who runs the run in `folder` at the moment, for people: "process 7 on w1"; empty: nobody. Holds
/// the folder's lock for the time of one system call, if it is free.
std::string holder_of(const std::filesystem::path& folder);

}  // namespace troupe::tune::detail
