#pragma once

#include <string>
#include <vector>

#include "node/limits/gpus.hpp"
#include "node/node.hpp"
#include "wire/message.capnp.h"

namespace troupe::node {

/// Throws Refused, naming the field, where the options offer what no machine has (amounts that are
/// negative or not finite, more than kMostGpus), or a label that only the head gives.
inline constexpr int kMostGpus = 1024;
void check_offer(const NodeOptions& options);

/// Throws Refused, saying why, where worker processes could not listen on NodeOptions::host, or
/// where others could not call them there: a name that does not resolve, an address of another
/// machine, all addresses at once. Looks the name up, which blocks, and opens a port there for a
/// moment.
void check_host(asio::io_context& loop, const std::string& host);

/// The GPUs that a node offers: those it finds, or as many as its options say, where made-up ones
/// follow the real ones.
std::vector<Gpu> offered_gpus(const NodeOptions& options);

/// What the node tells of itself: resources "cpu" in cores and "memory" in 10^9 bytes, then the
/// custom ones; GPUs apart.
void write_join(wire::NodeJoin::Builder join, const NodeOptions& options, const std::string& name,
                const std::string& host, const std::vector<Gpu>& gpus);

}  // namespace troupe::node
