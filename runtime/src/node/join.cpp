#include "node/join.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "config/name.hpp"
#include "node/limits/cpus.hpp"
#include "os/machine.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/socket/resolve.hpp"

namespace troupe::node {
namespace {

constexpr double kGigabyte = 1e9;

}  // namespace

void check_offer(const NodeOptions& options) {
  const auto refuse = [](const std::string& what) {
    raise({.kind = Failure::Kind::Refused, .message = "a node cannot offer " + what});
  };
  if (!std::isfinite(options.cpus) || options.cpus < 0)
    refuse(fmt::format("{} cpus", options.cpus));
  if (options.gpus && (*options.gpus < 0 || *options.gpus > kMostGpus)) {
    refuse(fmt::format("{} gpus: give a number from 0 to {}", *options.gpus, kMostGpus));
  }
  for (const auto& [name, units] : options.resources) {
    if (name.empty()) refuse("a custom resource without a name");
    config::require_name("the resource", name);
    if (!std::isfinite(units) || units < 0) refuse(fmt::format("{} of resource '{}'", units, name));
    if (name == "cpu" || name == "gpu")
      refuse(fmt::format("'{}' as a custom resource: it has an option of its own", name));
  }
  if (!options.name.empty()) config::require_name("the node's name", options.name);
  for (const auto& [key, value] : options.labels) {
    config::require_name("the label", key);
    if (const auto why = config::why_not_given(key); !why.empty()) refuse(why);
    if (!value.empty()) config::require_name("the label's value", value);
  }
}

void check_host(asio::io_context& loop, const std::string& host) {
  if (host.empty()) return;
  const auto refuse = [&host](const std::string& why) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format(
               "the processes of this node cannot listen on '{}' (--node-host): {}", host, why)});
  };
  std::string error;
  const auto found = transport::look_up(host, 0, false, error);
  if (found.empty()) return refuse(error);
  if (const auto text = transport::host_of(found.front()); text == "0.0.0.0" || text == "::") {
    return refuse("that is every address, and none that others could call: name one of them");
  }
  try {
    transport::Listener::tcp(loop, host, 0, [](transport::Socket) {});
  } catch (const Error& failed) {
    refuse(failed.what());
  }
}

std::vector<Gpu> offered_gpus(const NodeOptions& options) {
  if (options.gpus == 0) return {};
  auto gpus = find_gpus(std::getenv("CUDA_VISIBLE_DEVICES"));
  if (!options.gpus) return gpus;
  const auto wanted = static_cast<std::size_t>(*options.gpus);
  if (gpus.size() > wanted) gpus.resize(wanted);
  for (auto next = gpus.empty() ? 0U : gpus.back().index + 1; gpus.size() < wanted; ++next)
    gpus.push_back({next, {}, {}, 0});
  return gpus;
}

void write_join(wire::NodeJoin::Builder join, const NodeOptions& options, const std::string& name,
                const std::string& host, const std::vector<Gpu>& gpus) {
  join.setName(name);
  join.setHost(host);
  join.setMachine(os::machine_id());
  join.setPid(static_cast<std::uint32_t>(::getpid()));
  join.setOffersAllCpus(options.cpus <= 0);
  join.setResumes(true);
  if (!options.log_directory.empty()) {
    std::error_code failed;  // the working directory may have been removed
    const auto logs = std::filesystem::absolute(options.log_directory, failed).string();
    join.setLogs(failed ? options.log_directory : logs);
  }

  std::vector<std::pair<std::string, double>> resources{
      {"cpu", offered_cpus(options.cpus, os::usable_cpus())},
      {"memory", os::usable_memory_bytes() / kGigabyte}};
  for (const auto& custom : options.resources) {
    if (custom.first == "memory") {
      resources[1].second = custom.second;
    } else {
      resources.push_back(custom);
    }
  }
  auto amounts = join.initResources(static_cast<unsigned>(resources.size()));
  for (unsigned i = 0; i < amounts.size(); ++i) {
    amounts[i].setName(resources[i].first);
    amounts[i].setUnits(resources[i].second);
  }

  auto devices = join.initGpus(static_cast<unsigned>(gpus.size()));
  for (unsigned i = 0; i < devices.size(); ++i) {
    devices[i].setIndex(gpus[i].index);
    devices[i].setUuid(gpus[i].uuid);
    devices[i].setName(gpus[i].name);
    devices[i].setMemoryBytes(gpus[i].memory_bytes);
  }
  auto labels = join.initLabels(static_cast<unsigned>(options.labels.size()));
  for (unsigned i = 0; i < labels.size(); ++i) {
    labels[i].setKey(options.labels[i].first);
    labels[i].setValue(options.labels[i].second);
  }
}

}  // namespace troupe::node
