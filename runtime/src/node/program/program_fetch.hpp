#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include <boost/asio/io_context.hpp>

#include <troupe/errors.hpp>

#include "ids/ids.hpp"
#include "node/program/program_cache.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::node {

using runtime::JobId;

namespace asio = boost::asio;

struct ProgramFetch {
  transport::Endpoint driver;
  /// Role node, the cluster's token, subject: the driver's process.
  transport::ClientOptions client;
  JobId job{};
  std::uint64_t size = 0;                    ///< that the driver announced; another one is refused
  std::optional<Digest> digest;              ///< nullopt: the driver is asked
  std::chrono::milliseconds silence{10000};  ///< of the driver, in time that this process runs
};

/// Finds a program in the cache, or fetches it from the driver's process into it, hashing it as it
/// arrives. `done` is called once, on the loop, never from within. Failures are of kind Program and
/// say what to do. A file arrives in chunks of 1 MiB, a few of them on their way at a time.
void fetch_program(asio::io_context& loop, std::shared_ptr<ProgramCache> cache, ProgramFetch what,
                   std::function<void(std::variant<CachedProgram, Failure>)> done);

}  // namespace troupe::node
