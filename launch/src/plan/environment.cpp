#include "plan/environment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <nlohmann/json.hpp>

namespace troupe::launch {
namespace {

std::string endpoint(const std::string& address, std::uint16_t port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

void add_torchrun(Variables& to, const GangPlan& plan, int rank) {
  const auto& place = plan.ranks[static_cast<std::size_t>(rank)];
  const auto world = std::to_string(plan.ranks.size());
  to.insert(to.end(), {
                          {"RANK", std::to_string(rank)},
                          {"LOCAL_RANK", std::to_string(place.local_rank)},
                          {"GROUP_RANK", std::to_string(place.node_rank)},
                          {"NODE_RANK", std::to_string(place.node_rank)},
                          {"ROLE_RANK", std::to_string(rank)},
                          {"ROLE_NAME", "default"},
                          {"WORLD_SIZE", world},
                          {"LOCAL_WORLD_SIZE", std::to_string(place.local_size)},
                          {"GROUP_WORLD_SIZE", std::to_string(plan.nodes)},
                          {"ROLE_WORLD_SIZE", world},
                          {"MASTER_ADDR", plan.ranks.front().address},
                          {"MASTER_PORT", std::to_string(plan.master_port)},
                          {"TORCHELASTIC_RUN_ID", plan.run_id},
                          {"TORCHELASTIC_RESTART_COUNT", std::to_string(plan.restart)},
                          {"TORCHELASTIC_MAX_RESTARTS", std::to_string(plan.max_restarts)},
                          // Rank 0's program is to make the store at MASTER_PORT: no agent has.
                          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                      });
}

/// Horovod meets by the names of hosts: nodes that share an address, as they are on one machine, need
/// names of their own.
std::string horovod_host(const GangPlan& plan, const RankPlace& place) {
  const bool shared = std::ranges::any_of(plan.ranks, [&place](const RankPlace& other) {
    return other.address == place.address && other.node_rank != place.node_rank;
  });
  return shared ? fmt::format("{}-{}", place.address, place.node_rank) : place.address;
}

/// What hvd.init() needs to meet over Gloo, at the rendezvous on rank 0's node.
void add_horovod_rendezvous(Variables& to, const GangPlan& plan, const RankPlace& place) {
  if (plan.rendezvous_port == 0) return;
  to.insert(to.end(), {
                          {"HOROVOD_GLOO_RENDEZVOUS_ADDR", plan.ranks.front().address},
                          {"HOROVOD_GLOO_RENDEZVOUS_PORT", std::to_string(plan.rendezvous_port)},
                      });
  // Without it, Gloo listens where the machine's own name leads, which may be loopback.
  if (!place.interface.empty()) to.emplace_back("HOROVOD_GLOO_IFACE", place.interface);
}

/// The index of each node is that of its first rank among such; Horovod's "cross" ranks are the
/// nodes that have a rank of this local rank.
void add_horovod(Variables& to, const GangPlan& plan, int rank) {
  const auto& place = plan.ranks[static_cast<std::size_t>(rank)];
  int cross_rank = 0, cross_size = 0;
  for (const auto& other : plan.ranks) {
    if (other.local_rank != place.local_rank) continue;
    ++cross_size;
    if (other.node_rank < place.node_rank) ++cross_rank;
  }
  to.insert(to.end(), {
                          {"HOROVOD_RANK", std::to_string(rank)},
                          {"HOROVOD_SIZE", std::to_string(plan.ranks.size())},
                          {"HOROVOD_LOCAL_RANK", std::to_string(place.local_rank)},
                          {"HOROVOD_LOCAL_SIZE", std::to_string(place.local_size)},
                          {"HOROVOD_CROSS_RANK", std::to_string(cross_rank)},
                          {"HOROVOD_CROSS_SIZE", std::to_string(cross_size)},
                          {"HOROVOD_HOSTNAME", horovod_host(plan, place)},
                      });
  add_horovod_rendezvous(to, plan, place);
}

void add_open_mpi(Variables& to, const GangPlan& plan, int rank) {
  const auto& place = plan.ranks[static_cast<std::size_t>(rank)];
  to.insert(to.end(), {
                          {"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                          {"OMPI_COMM_WORLD_SIZE", std::to_string(plan.ranks.size())},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(place.local_rank)},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(place.local_size)},
                          {"OMPI_COMM_WORLD_NODE_RANK", std::to_string(place.local_rank)},
                          {"OMPI_UNIVERSE_SIZE", std::to_string(plan.ranks.size())},
                      });
}

void add_tensorflow(Variables& to, const GangPlan& plan, int rank) {
  auto workers = nlohmann::json::array();
  for (const auto& place : plan.ranks) workers.push_back(endpoint(place.address, place.port));
  to.emplace_back("TF_CONFIG", nlohmann::json{{"cluster", {{"worker", std::move(workers)}}},
                                              {"task", {{"type", "worker"}, {"index", rank}}}}
                                   .dump());
}

/// Where a rank's own GPUs stand among those that it sees.
std::vector<std::size_t> own_devices(const GangPlan& plan, const RankPlace& place) {
  std::vector<std::size_t> devices;
  for (const auto& gpu : place.gpus) {
    const auto& visible = plan.isolate_gpus ? place.gpus : place.node_gpus;
    const auto found = std::ranges::find(visible, gpu);
    devices.push_back(static_cast<std::size_t>(found - visible.begin()));
  }
  return devices;
}

/// JAX itself reads the address and the devices. It has no variables for the number of processes
/// and the process's own: programs hand those to jax.distributed.initialize().
void add_jax(Variables& to, const GangPlan& plan, int rank) {
  const auto& place = plan.ranks[static_cast<std::size_t>(rank)];
  to.insert(to.end(), {
                          {"JAX_COORDINATOR_ADDRESS",
                           endpoint(plan.ranks.front().address, plan.coordinator_port)},
                          {"JAX_NUM_PROCESSES", std::to_string(plan.ranks.size())},
                          {"JAX_PROCESS_ID", std::to_string(rank)},
                      });
  // A process of JAX takes all GPUs that it sees, unless it is told which.
  const auto devices = own_devices(plan, place);
  if (!devices.empty())
    to.emplace_back("JAX_LOCAL_DEVICE_IDS", fmt::format("{}", fmt::join(devices, ",")));
}

}  // namespace

Variables rank_environment(const GangPlan& plan, int rank) {
  const auto& place = plan.ranks.at(static_cast<std::size_t>(rank));
  Variables variables;
  add_torchrun(variables, plan, rank);
  add_tensorflow(variables, plan, rank);
  add_horovod(variables, plan, rank);
  add_open_mpi(variables, plan, rank);
  add_jax(variables, plan, rank);
  const auto& gpus = plan.isolate_gpus ? place.gpus : place.node_gpus;
  variables.emplace_back("CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(gpus, ",")));
  const auto threads = std::max(1.0, std::floor(plan.cpus));
  variables.emplace_back("OMP_NUM_THREADS", fmt::format("{:.0f}", threads));
  return variables;
}

bool stays_here(const std::string& name) {
  constexpr std::array<std::string_view, 17> kOfThisMachine{"HOSTNAME",
                                                            "PWD",
                                                            "OLDPWD",
                                                            "SHLVL",
                                                            "_",
                                                            "DISPLAY",
                                                            "WAYLAND_DISPLAY",
                                                            "TERM",
                                                            "TMPDIR",
                                                            "COLUMNS",
                                                            "LINES",
                                                            "TTY",
                                                            "STY",
                                                            "TMUX",
                                                            "XAUTHORITY",
                                                            "WINDOWID",
                                                            "CUDA_VISIBLE_DEVICES"};
  if (std::ranges::find(kOfThisMachine, name) != kOfThisMachine.end()) return true;
  constexpr std::array<std::string_view, 4> kBeginnings{"TROUPE_", "XDG_", "SSH_", "DBUS_"};
  return std::ranges::any_of(kBeginnings,
                             [&name](std::string_view begin) { return name.starts_with(begin); });
}

Variables environment_for_programs() {
  auto variables = own_environment();
  std::erase_if(variables, [](const auto& variable) {
    return variable.first == "OMP_NUM_THREADS" || variable.first == "MKL_NUM_THREADS" ||
           variable.first == "OPENBLAS_NUM_THREADS";
  });
  return variables;
}

Variables threads_of_user(const Variables& variables) {
  Variables threads;
  std::ranges::copy_if(variables, std::back_inserter(threads), [](const auto& variable) {
    return variable.first == "OMP_NUM_THREADS" && !variable.second.empty();
  });
  return threads;
}

Variables own_environment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || text.starts_with("TROUPE_")) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Variables environment_to_hand_on() {
  auto variables = own_environment();
  std::erase_if(variables, [](const auto& variable) { return stays_here(variable.first); });
  return variables;
}

std::vector<std::string> visible_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> gpus;
  if (visible == nullptr || *visible == '\0') return gpus;
  return boost::split(gpus, visible, boost::is_any_of(","));
}

Variables with_defaults(Variables variables) {
  return merged({{"HOROVOD_CONTROLLER", "gloo"},
                 {"HOROVOD_CPU_OPERATIONS", "gloo"},
                 {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}},
                with_live_output(std::move(variables)));
}

Variables with_live_output(Variables variables) {
  return merged({{"PYTHONUNBUFFERED", "1"}}, variables);
}

Variables merged(Variables base, const Variables& over) {
  for (const auto& [name, value] : over) {
    const auto there = std::ranges::find(base, name, &Variables::value_type::first);
    if (there == base.end()) {
      base.emplace_back(name, value);
    } else {
      there->second = value;
    }
  }
  return base;
}

}  // namespace troupe::launch
