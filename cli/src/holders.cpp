#include "holders.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "words.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;
using Number = std::uint64_t;

bool is_leased(const json& process) {
  return process.at("use").get_ref<const std::string&>().starts_with("lease ");
}

/// What processes that do the same are called: "actor", "actors", and " Counter" behind either.
struct Doing {
  std::string one, many, what;
  bool operator==(const Doing&) const = default;
};

/// Processes of one job that do the same, and what all of them hold.
struct Holders {
  Number job = 0;
  Doing doing;
  std::size_t count = 0;
  std::map<std::string, double> held = {};
};

Doing doing_of(const json& process, const std::map<Number, std::string>& types,
               const RunningCalls& running) {
  const auto use = process.at("use").get<std::string>();
  if (is_leased(process)) {
    const auto task = running.of(process).at("task");
    if (task.is_null()) return {"task process", "task processes", ""};
    return {"task", "tasks", " " + task.get<std::string>()};
  }
  if (use.starts_with("actor ")) {
    const auto type = types.find(process.at("process").get<Number>());
    return {"actor", "actors", type == types.end() ? "" : " " + type->second};
  }
  if (const auto gang = use.find(" of gang "); gang != std::string::npos)
    return {"rank", "ranks", use.substr(gang)};
  return {"process that ends", "processes that end", ""};
}

/// "2 CPUs", "1 GPU", "memory 2.0 GB", "licences 3".
std::string counted(const std::string& resource, double units) {
  if (resource == "cpu") return fmt::format("{:g} {}", units, units == 1 ? "CPU" : "CPUs");
  if (resource == "gpu") return fmt::format("{:g} {}", units, units == 1 ? "GPU" : "GPUs");
  return amount_text(resource, units);
}

std::string line_of(const Holders& holders) {
  std::vector<std::string> amounts;
  for (const auto& [resource, units] : holders.held) amounts.push_back(counted(resource, units));
  const auto& doing = holders.doing;
  return fmt::format("{} by {} {}{} (job {})", joined(amounts, ", "), holders.count,
                     holders.count == 1 ? doing.one : doing.many, doing.what, holders.job);
}

}  // namespace

std::vector<std::string> holders(const json& status, Number node, const RunningCalls& running) {
  std::map<Number, std::string> types;  // of actors, by process
  for (const auto& actor : status.at("actors"))
    types[actor.at("process").get<Number>()] = actor.at("type").get<std::string>();
  std::vector<Holders> all;
  for (const auto& process : status.at("processes")) {
    const auto held = process.value("held", json::object());  // an older head does not say it
    if (held.empty() || process.at("node") != node) continue;
    const auto job = process.at("job").get<Number>();
    auto doing = doing_of(process, types, running);
    auto alike = std::ranges::find_if(
        all, [&](const Holders& one) { return one.job == job && one.doing == doing; });
    if (alike == all.end()) alike = all.insert(all.end(), {.job = job, .doing = std::move(doing)});
    ++alike->count;
    for (const auto& [resource, units] : held.items()) alike->held[resource] += units.get<double>();
  }
  std::vector<std::string> texts;
  for (const auto& one : all) texts.push_back(line_of(one));
  return texts;
}

bool has_leased_holder(const json& status) {
  return std::ranges::any_of(status.at("processes"), [](const json& process) {
    return is_leased(process) && !process.value("held", json::object()).empty();
  });
}

}  // namespace troupe::cli
