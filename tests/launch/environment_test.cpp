#include "plan/environment.hpp"

#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace troupe::launch;

namespace {

std::map<std::string, std::string> variables_of(const GangPlan& plan, int rank) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : rank_environment(plan, rank)) {
    CHECK(found.emplace(name, value).second);  // each once
  }
  return found;
}

/// Two nodes: two hosts of two ranks each on the first, one on the second.
GangPlan two_nodes() {
  const std::vector<std::string> gpus{"0", "1", "5", "7"};  // a host sees those of all on its node
  const std::vector<HostFacts> hosts{
      {.node_rank = 0, .address = "10.0.0.1", .node = 4, .gpus = gpus, .ports = {1, 2, 3, 4}},
      {.node_rank = 0, .address = "10.0.0.1", .node = 4, .gpus = gpus, .ports = {5, 6, 7, 8}},
      {.node_rank = 1,
       .address = "10.0.0.2",
       .node = 9,
       .gpus = {"0", "1"},
       .ports = {9, 10, 11, 12}}};
  auto plan = plan_gang(hosts, 2);
  plan.run_id = "run";
  plan.restart = 1;
  plan.max_restarts = 3;
  plan.cpus = 2.5;
  return plan;
}

}  // namespace

TEST_CASE("ranks are numbered host by host, and on each node from 0", "[launch]") {
  const auto plan = two_nodes();
  REQUIRE(plan.ranks.size() == 6);
  CHECK(plan.nodes == 2);
  const int local[] = {0, 1, 2, 3, 0, 1};
  for (std::size_t rank = 0; rank < 6; ++rank) {
    CAPTURE(rank);
    CHECK(plan.ranks[rank].local_rank == local[rank]);
    CHECK(plan.ranks[rank].local_size == (rank < 4 ? 4 : 2));
    CHECK(plan.ranks[rank].node_rank == (rank < 4 ? 0 : 1));
    CHECK(plan.ranks[rank].host == static_cast<int>(rank) / 2);
  }
}

TEST_CASE("a rank has the variables that torchrun sets", "[launch]") {
  const auto rank = variables_of(two_nodes(), 5);
  const std::map<std::string, std::string> expected{{"RANK", "5"},
                                                    {"LOCAL_RANK", "1"},
                                                    {"GROUP_RANK", "1"},
                                                    {"NODE_RANK", "1"},
                                                    {"ROLE_RANK", "5"},
                                                    {"ROLE_NAME", "default"},
                                                    {"WORLD_SIZE", "6"},
                                                    {"LOCAL_WORLD_SIZE", "2"},
                                                    {"GROUP_WORLD_SIZE", "2"},
                                                    {"ROLE_WORLD_SIZE", "6"},
                                                    {"MASTER_ADDR", "10.0.0.1"},
                                                    {"MASTER_PORT", "1"},
                                                    {"TORCHELASTIC_RESTART_COUNT", "1"},
                                                    {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                                    {"TORCHELASTIC_RUN_ID", "run"},
                                                    {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                    {"OMP_NUM_THREADS", "2"}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    REQUIRE(rank.contains(name));
    CHECK(rank.at(name) == value);
  }
}

TEST_CASE("a rank has the variables of Horovod, Open MPI and JAX", "[launch]") {
  const auto plan = two_nodes();
  const auto rank = variables_of(plan, 5);
  CHECK(rank.at("HOROVOD_RANK") == "5");
  CHECK(rank.at("HOROVOD_SIZE") == "6");
  CHECK(rank.at("HOROVOD_LOCAL_RANK") == "1");
  CHECK(rank.at("HOROVOD_LOCAL_SIZE") == "2");
  CHECK(rank.at("HOROVOD_CROSS_RANK") == "1");
  CHECK(rank.at("HOROVOD_CROSS_SIZE") == "2");
  CHECK(variables_of(plan, 3).at("HOROVOD_CROSS_SIZE") == "1");  // no other node has a fourth rank
  CHECK(rank.at("OMPI_COMM_WORLD_RANK") == "5");
  CHECK(rank.at("OMPI_COMM_WORLD_SIZE") == "6");
  CHECK(rank.at("OMPI_COMM_WORLD_LOCAL_RANK") == "1");
  CHECK(rank.at("OMPI_COMM_WORLD_LOCAL_SIZE") == "2");
  CHECK(rank.at("OMPI_UNIVERSE_SIZE") == "6");
  CHECK(variables_of(plan, 3).at("OMPI_COMM_WORLD_NODE_RANK") == "3");  // of the ranks on its node
  CHECK(rank.at("JAX_COORDINATOR_ADDRESS") == "10.0.0.1:2");
  CHECK(rank.at("JAX_NUM_PROCESSES") == "6");
  CHECK(rank.at("JAX_PROCESS_ID") == "5");
  CHECK(rank.at("JAX_LOCAL_DEVICE_IDS") == "1");
}

TEST_CASE("ranks find Horovod's rendezvous where the first host serves it", "[launch]") {
  auto plan = two_nodes();
  CHECK_FALSE(variables_of(plan, 0).contains("HOROVOD_GLOO_RENDEZVOUS_ADDR"));
  plan.rendezvous_port = 77;
  plan.ranks[5].interface = "eth1";
  const auto rank = variables_of(plan, 5);
  CHECK(rank.at("HOROVOD_GLOO_RENDEZVOUS_ADDR") == "10.0.0.1");
  CHECK(rank.at("HOROVOD_GLOO_RENDEZVOUS_PORT") == "77");
  CHECK(rank.at("HOROVOD_GLOO_IFACE") == "eth1");
  CHECK_FALSE(variables_of(plan, 0).contains("HOROVOD_GLOO_IFACE"));
}

TEST_CASE("hosts of Horovod have names of their own where nodes share an address", "[launch]") {
  auto plan = two_nodes();
  CHECK(variables_of(plan, 0).at("HOROVOD_HOSTNAME") == "10.0.0.1");
  CHECK(variables_of(plan, 5).at("HOROVOD_HOSTNAME") == "10.0.0.2");
  for (auto& place : plan.ranks) place.address = "127.0.0.1";
  CHECK(variables_of(plan, 0).at("HOROVOD_HOSTNAME") == "127.0.0.1-0");
  CHECK(variables_of(plan, 3).at("HOROVOD_HOSTNAME") == "127.0.0.1-0");
  CHECK(variables_of(plan, 5).at("HOROVOD_HOSTNAME") == "127.0.0.1-1");
}

TEST_CASE("TF_CONFIG names a port of each rank's own", "[launch]") {
  const auto plan = two_nodes();
  const auto config = nlohmann::json::parse(variables_of(plan, 4).at("TF_CONFIG"));
  CHECK(config.at("task").at("type") == "worker");
  CHECK(config.at("task").at("index") == 4);
  const auto workers = config.at("cluster").at("worker").get<std::vector<std::string>>();
  CHECK(workers.at(0) == "10.0.0.1:3");
  CHECK(workers.at(5) == "10.0.0.2:12");
  CHECK(std::set<std::string>(workers.begin(), workers.end()).size() == 6);
}

TEST_CASE("a rank sees all GPUs of the gang on its node, or its own", "[launch]") {
  auto plan = two_nodes();
  CHECK(variables_of(plan, 2).at("CUDA_VISIBLE_DEVICES") == "0,1,5,7");
  CHECK(variables_of(plan, 5).at("CUDA_VISIBLE_DEVICES") == "0,1");
  plan.isolate_gpus = true;
  CHECK(variables_of(plan, 2).at("CUDA_VISIBLE_DEVICES") == "5");
  CHECK(variables_of(plan, 5).at("CUDA_VISIBLE_DEVICES") == "1");
  CHECK(variables_of(plan, 5).at("JAX_LOCAL_DEVICE_IDS") == "0");
}

TEST_CASE("ranks have several GPUs each, or share one", "[launch]") {
  const auto own = [](std::vector<std::string> gpus, int ranks) {
    std::vector<HostFacts> hosts;
    for (int host = 0; host < ranks; ++host)
      hosts.push_back({.address = "10.0.0.1", .gpus = gpus, .ports = {1, 2, 3}});
    auto plan = plan_gang(hosts, 1);
    plan.isolate_gpus = true;
    std::vector<std::string> found;
    for (int rank = 0; rank < ranks; ++rank)
      found.push_back(variables_of(plan, rank).at("CUDA_VISIBLE_DEVICES"));
    return found;
  };
  CHECK(own({"a", "b", "c", "d"}, 2) == std::vector<std::string>{"a,b", "c,d"});
  CHECK(own({"a", "b"}, 4) == std::vector<std::string>{"a", "a", "b", "b"});
  CHECK(own({}, 2) == std::vector<std::string>{"", ""});
}

TEST_CASE("addresses with colons are written in brackets where a port follows", "[launch]") {
  auto plan = plan_gang({{.address = "fd00::1", .gpus = {}, .ports = {7, 8, 9}}}, 1);
  const auto rank = variables_of(plan, 0);
  CHECK(rank.at("MASTER_ADDR") == "fd00::1");
  CHECK(rank.at("JAX_COORDINATOR_ADDRESS") == "[fd00::1]:8");
}

TEST_CASE("what belongs to one machine or to Troupe is not handed on", "[launch]") {
  for (const auto* name : {"TROUPE_TOKEN", "TROUPE_ADDRESS", "HOSTNAME", "PWD",
                           "CUDA_VISIBLE_DEVICES", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DISPLAY"}) {
    CAPTURE(name);
    CHECK(stays_here(name));
  }
  for (const auto* name :
       {"PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "NCCL_DEBUG", "LD_LIBRARY_PATH"}) {
    CAPTURE(name);
    CHECK_FALSE(stays_here(name));
  }
  CHECK(merged({{"A", "1"}, {"B", "2"}}, {{"B", "3"}, {"C", "4"}}) ==
        Variables{{"A", "1"}, {"B", "3"}, {"C", "4"}});
}

TEST_CASE("what launchers set where nobody has stays as somebody has set it", "[launch]") {
  CHECK(with_defaults({{"A", "1"}}) == Variables{{"HOROVOD_CONTROLLER", "gloo"},
                                                 {"HOROVOD_CPU_OPERATIONS", "gloo"},
                                                 {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                                 {"PYTHONUNBUFFERED", "1"},
                                                 {"A", "1"}});
  CHECK(with_defaults({{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
                       {"HOROVOD_CONTROLLER", "mpi"},
                       {"HOROVOD_CPU_OPERATIONS", "ccl"},
                       {"PYTHONUNBUFFERED", ""}}) ==
        Variables{{"HOROVOD_CONTROLLER", "mpi"},
                  {"HOROVOD_CPU_OPERATIONS", "ccl"},
                  {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
                  {"PYTHONUNBUFFERED", ""}});
}
