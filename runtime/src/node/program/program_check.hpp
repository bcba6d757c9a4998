#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "node/guard/reaper.hpp"

namespace troupe::node {

/// Asks the dynamic loader which libraries of the program at `path` are not on this machine;
/// nothing of the program runs. `done` is called once, on the loop, within `timeout`: "" if nothing
/// is missing (or the loader cannot be asked), else "libfoo.so.2, libbar.so.1" or the loader's own
/// words.
void find_missing_libraries(asio::io_context& loop, Reaper& reaper, const std::string& path,
                            std::chrono::milliseconds timeout,
                            std::function<void(std::string missing)> done);

/// The missing part of what `ldd` prints. Pure.
std::string missing_in(const std::string& listing);

}  // namespace troupe::node
