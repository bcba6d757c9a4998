#include <troupe/options.hpp>

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "config/name.hpp"

namespace troupe::detail {
namespace {

constexpr double kMost = 1e12;  // of one resource; a scheduler's fixed point holds it
constexpr double kByKind = -1;  // of Options::cpus

/// `field` names the option in the error. Zero is left out: an absent resource is none of it.
void add(RequestOptions& owned, std::string_view field, std::string_view name, double amount) {
  if (!std::isfinite(amount) || amount < 0 || amount > kMost) {
    throw std::invalid_argument(
        fmt::format("{} must be between 0 and 10^12, not {}", field, amount));
  }
  for (const auto& [other, unused] : owned.resources) {
    if (other == name)
      throw std::invalid_argument(fmt::format("{} asks for \"{}\" twice", field, name));
  }
  if (amount > 0) owned.resources.emplace_back(name, amount);
}

/// A rank of a gang is an actor.
void check_retries(const RequestOptions& options) {
  if (options.retries <= 0) return;
  throw std::invalid_argument(
      fmt::format("Options::retries ({}) is given to an actor, which is not started again since "
                  "its state is lost: leave it out, catch ActorDied and spawn another",
                  options.retries));
}

/// What both kinds of options have, which is what a node must have. `kind` names them in errors.
template <class AnyOptions>
RequestOptions needs_of(const AnyOptions& options, std::string_view kind) {
  RequestOptions owned;
  owned.resources.clear();
  owned.cpus_by_kind = options.cpus == kByKind;
  add(owned, fmt::format("{}::cpus", kind), "cpu", owned.cpus_by_kind ? 1 : options.cpus);
  add(owned, fmt::format("{}::gpus", kind), "gpu", options.gpus);
  add(owned, fmt::format("{}::memory_gb", kind), "memory", options.memory_gb);
  if (options.gpus > 1 && options.gpus != std::floor(options.gpus)) {
    throw std::invalid_argument(fmt::format(
        "{}::gpus must be whole above 1, not {}; below 1 it shares one GPU", kind, options.gpus));
  }
  for (const auto& [name, amount] : options.resources) {
    if (name.empty())
      throw std::invalid_argument(fmt::format("{}::resources has an entry without a name", kind));
    config::check_name(fmt::format("the name in {}::resources", kind), name);
    if (name == "cpu" || name == "gpu" || name == "memory") {
      throw std::invalid_argument(
          fmt::format("{}::resources cannot hold \"{}\"; it has an option of its own", kind, name));
    }
    add(owned, fmt::format("{}::resources[\"{}\"]", kind, name), name, amount);
  }
  for (const auto& [key, value] : options.labels) {
    if (key.empty())
      throw std::invalid_argument(fmt::format("{}::labels has an entry without a name", kind));
    config::check_name(fmt::format("the name in {}::labels", kind), key);
    if (!value.empty()) config::check_name(fmt::format("the value in {}::labels", kind), value);
    owned.labels.emplace_back(key, value);
  }
  return owned;
}

}  // namespace

RequestOptions own(const Options& options) {
  auto owned = needs_of(options, "Options");
  if (options.retries < -1) {
    throw std::invalid_argument(
        fmt::format("Options::retries must be -1 (3 times) or more, not {}", options.retries));
  }
  owned.retries = options.retries;
  if (!options.name.empty()) config::check_actor_name("Options::name", options.name);
  owned.name = options.name;
  owned.detached = options.detached;
  owned.spread = options.spread;
  return owned;
}

RequestOptions request_of(const RankOptions& options) { return needs_of(options, "RankOptions"); }

namespace {

void check_not_detached(const RequestOptions& options, std::string_view whose) {
  if (!options.detached) return;
  throw std::invalid_argument(
      fmt::format("Options::detached is given to {}, and only an actor outlives its program: leave "
                  "it out, or spawn an actor with it",
                  whose));
}

}  // namespace

const RequestOptions& for_task(const RequestOptions& options) {
  check_not_detached(options, "a task");
  if (!options.name.empty()) {
    throw std::invalid_argument(
        fmt::format("Options::name (\"{}\") is given to a task, which cannot be found by a name: "
                    "leave it out, or spawn an actor with it",
                    options.name));
  }
  return options;
}

RequestOptions for_actor(const RequestOptions& options) {
  if (options.detached && options.name.find('/') == std::string::npos) {
    throw std::invalid_argument(fmt::format(
        "Options::detached is given to an actor with {}, so no other program could find it: give "
        "Options::name a namespace and a name, as in \"shared/counter\"",
        options.name.empty() ? "no name" : fmt::format("the name \"{}\"", options.name)));
  }
  check_retries(options);
  auto actor = options;
  if (actor.cpus_by_kind)
    std::erase_if(actor.resources, [](const auto& amount) { return amount.first == "cpu"; });
  return actor;
}

const RequestOptions& for_rank(const RequestOptions& options) {
  check_not_detached(options, "each rank of a gang");
  if (!options.name.empty()) {
    throw std::invalid_argument(
        fmt::format("Options::name (\"{}\") is given to each rank of a gang, and a name is of one "
                    "actor: leave it out, ranks are reached by their handles",
                    options.name));
  }
  check_retries(options);
  return options;
}

}  // namespace troupe::detail
