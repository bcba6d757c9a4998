#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "config/json.hpp"
#include "holders.hpp"
#include "list/running_calls.hpp"
#include "output.hpp"
#include "store/types.hpp"
#include "transport/socket/socket.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;

/// Of each resource that `total` names, what `resources` has of it, none too.
std::string amounts(const json& resources, const json& total) {
  std::string text;
  for (const auto& [name, all] : total.items()) {
    text += text.empty() ? "" : ", ";
    text += amount_text(name, resources.value(name, 0.0));
  }
  return text.empty() ? "nothing" : text;
}

std::string bytes(const json& number) { return store::format_bytes(number.get<std::uint64_t>()); }

/// Empty where nobody has used it yet.
std::string store_usage(const json& node) {
  if (!node.contains("store")) return {};
  const auto& store = node.at("store");
  auto text =
      fmt::format("; object store {} of {}", bytes(store.at("used")), bytes(store.at("capacity")));
  if (store.at("spilled").get<std::uint64_t>() > 0)
    text += fmt::format(", {} on disk", bytes(store.at("spilled")));
  return text;
}

void print_nodes(const json& status, const RunningCalls& running) {
  fmt::print("NODE  NAME              STATE     FREE / TOTAL\n");
  for (const auto& node : status.at("nodes")) {
    fmt::print("{:<5} {:<17} {:<9} {} / {}{}\n", node.at("node").get<int>(),
               node.at("name").get<std::string>(), node.at("state").get<std::string>(),
               amounts(node.at("free"), node.at("total")),
               amounts(node.at("total"), node.at("total")), store_usage(node));
    // Busy or not, what they hold is nobody else's: why a task waits on a machine without load.
    for (const auto& holder : holders(status, node.at("node").get<std::uint64_t>(), running))
      fmt::print("      held: {}\n", holder);
    if (node.contains("logs")) fmt::print("      logs {}\n", node.at("logs").get<std::string>());
  }
}

/// What a request is for, without the number of its actor or gang, which no other one has.
std::string kind_of(const json& pending) {
  const auto what = pending.at("what").get<std::string>();
  const auto kind = pending.value("kind", "");
  if (!pending.contains(kind)) return what;
  const auto own = fmt::format("{} {} of ", kind, pending.at(kind).get<std::uint64_t>());
  return what.starts_with(own) ? kind + " of " + what.substr(own.size()) : what;
}

/// Requests of a job that wait for the same and for the same reason.
struct Alike {
  json one;  // whichever has waited longest
  std::size_t count = 0;
};

/// In the order of the first of each.
std::vector<Alike> alike_in(const json& pending) {
  const auto is_alike = [](const json& one, const json& other) {
    return kind_of(one) == kind_of(other) && one.at("job") == other.at("job") &&
           one.value("type", "") == other.value("type", "") &&
           one.at("reason") == other.at("reason");
  };
  std::vector<Alike> all;
  for (const auto& row : pending) {
    auto found =
        std::ranges::find_if(all, [&](const auto& alike) { return is_alike(alike.one, row); });
    if (found == all.end()) found = all.insert(all.end(), {.one = row});
    ++found->count;
    if (found->one.at("seconds") < row.at("seconds")) found->one = row;
  }
  return all;
}

void print_pending(const json& pending) {
  for (const auto& [row, count] : alike_in(pending)) {
    const auto type = row.value("type", "");
    fmt::print("waiting {:.1f} s{}: {}{} for job {} ({}): {}\n", row.at("seconds").get<double>(),
               count == 1 ? "" : fmt::format(" (the longest of {} that are alike)", count),
               count == 1 ? row.at("what").get<std::string>() : kind_of(row),
               type.empty() ? "" : fmt::format(" [{}]", type), row.at("job").get<std::uint64_t>(),
               row.value("name", ""), row.at("reason").get<std::string>());
  }
}

void print_rows(const json& status) {
  for (const auto& job : status.at("jobs")) {
    const auto weight = job.at("weight").get<double>();
    const auto pid = job.at("pid").get<int>();  // 0: of a detached actor, without a driver
    const auto processes = job.at("processes").get<int>();
    fmt::print("job {}: {}{}, {} {}{}\n", job.at("job").get<std::uint64_t>(),
               job.at("name").get<std::string>(), pid == 0 ? "" : fmt::format(" (pid {})", pid),
               processes, processes == 1 ? "process" : "processes",
               weight == 1 ? "" : fmt::format(", weight {}", weight));
  }
  for (const auto& actor : status.at("actors")) {
    fmt::print("actor {}: {} {} on node {}, pid {}\n", actor.at("actor").get<std::uint64_t>(),
               actor.at("type").get<std::string>(), actor.at("name").get<std::string>(),
               actor.at("node").get<int>(), actor.at("pid").get<int>());
  }
  for (const auto& gang : status.at("gangs")) {
    if (gang.at("state") == "pending") continue;  // among those that wait
    const auto size = gang.at("size").get<int>();
    fmt::print("gang {}: {} {} of job {}, {}\n", gang.at("gang").get<std::uint64_t>(), size,
               size == 1 ? "rank" : "ranks", gang.at("job").get<std::uint64_t>(),
               gang.at("state").get<std::string>());
  }
  print_pending(status.at("pending"));
}

/// What leased processes run is known to their nodes alone, and the status does not wait for one that
/// stands still.
RunningCalls running_calls(const FoundHead& head, const config::FoundToken& token) {
  constexpr int kSeconds = 2;
  try {
    return RunningCalls(ask_nodes(head, token, {{"do", "running"}, {"seconds", kSeconds}}));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

int run_status(const StatusArguments& arguments) {
  const auto head = find_head(arguments.head);
  const auto token = find_token(head, arguments.token_file);
  const auto status = ask_head(head, token, {{"do", "status"}});
  if (arguments.as_json) {
    fmt::print("{}\n", config::to_text(status, 2));
    flush_output();
    return 0;
  }
  const auto running = has_leased_holder(status) ? running_calls(head, token) : RunningCalls();
  fmt::print("cluster {} at {}, up {:.0f} s\n", status.at("cluster").get<std::string>(),
             transport::format_endpoint(head.at.host, head.at.port),
             status.at("up_seconds").get<double>());
  print_nodes(status, running);
  print_rows(status);
  flush_output();
  return 0;
}

}  // namespace troupe::cli
