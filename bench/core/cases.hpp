#pragma once

#include <array>
#include <string_view>

#include "harness.hpp"

/// The cases of core_bench, by what they need. Each runs those of its cases that are wanted, and
/// nothing where none is.
namespace troupe::bench {

// In one private cluster of this machine's cores that is there already, one after the other, as in
// the peer's program.
void calls(const Report& report);
void tasks(const Report& report);
void values(const Report& report);
void actors(const Report& report);
inline constexpr std::array<std::string_view, 16> kSessionCases = {
    "actor_call_sync",    "actor_call_async",  "actor_replies_32KiB_async",
    "actor_calls_n_to_n", "task_sync",         "task_async",
    "put_small",          "get_small",         "memcpy_100MiB_GBps",
    "put_100MiB_GBps",    "get_100MiB_GBps",   "get_100MiB_per_s",
    "actors_started_20",  "forks_answered_20", "actor_death_told_ms",
    "rank_death_told_ms"};

// Each in a cluster of its own.
void many_actors(const Report& report);
void pending_tasks(const Report& report);
void cluster(const Report& report);  ///< real heads and workers as processes

/// Under one name, `growth`, and printed as growth_...: how cost grows with callers, actors, sizes
/// and queues.
void growth(const Report& report);

// Without a cluster.
void call_parts(const Report& report);
void scheduler(const Report& report);
void scheduler_growth(const Report& report);
/// Real heads and workers, on hosts that are network namespaces.
void network(const Report& report);
inline constexpr std::array<std::string_view, 6> kNetworkCases = {
    "link_1GiB_GBps",     "transfer_1GiB_GBps", "broadcast_1GiB_to_4_s",
    "remote_calls_async", "remote_task_sync",   "remote_tasks_async"};

}  // namespace troupe::bench
