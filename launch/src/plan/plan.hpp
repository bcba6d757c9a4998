#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// What is known of a gang of programs before they start. Values; those that cross processes say so.
namespace troupe::launch {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// What a host (the actor that runs one or more ranks of the gang) says of its place. Crosses.
struct HostFacts {
  int node_rank = 0;                  ///< of its node among the gang's nodes
  std::string address;                ///< where processes of other nodes reach this one
  std::uint32_t node = 0;             ///< the node's number in the cluster
  std::vector<std::string> gpus;      ///< ids of all that the gang has on its node, in rank order
  std::vector<std::uint16_t> ports;   ///< free, and kept free until its programs start
  bool has_workdir = false;           ///< the folder that was asked for is there already
  std::string interface = {};         ///< of its network, that has the address; empty: not known
  std::uint16_t rendezvous_port = 0;  ///< of Horovod's rendezvous, which it serves; 0: it does not
};

/// One rank of the gang.
struct RankPlace {
  int host = 0;  ///< the index of its host
  int node_rank = 0;
  int local_rank = 0;
  int local_size = 1;
  std::string address;
  std::uint32_t node = 0;                   ///< the node's number in the cluster
  std::vector<std::string> gpus = {};       ///< its own
  std::vector<std::string> node_gpus = {};  ///< of all ranks on its node, in the order of ranks
  std::uint16_t port = 0;                   ///< of its own
  std::string interface = {};               ///< of the network that has the address; may be empty
};

/// All that the variables of every rank are made of.
struct GangPlan {
  std::vector<RankPlace> ranks;
  int nodes = 1;
  std::uint16_t master_port = 0;       ///< on rank 0's node; torch's store
  std::uint16_t coordinator_port = 0;  ///< on rank 0's node; JAX
  std::uint16_t rendezvous_port = 0;   ///< on rank 0's node; Horovod; 0: nobody serves it
  std::string run_id;
  int restart = 0;  ///< how many restarts went before; a growth of the gang is none
  int max_restarts = 0;
  double cpus = 1;  ///< of each rank
  bool isolate_gpus = false;
};

/// How many ports each host reserves: for the first two, those of the plan; one for each rank.
constexpr int ports_of_host(int ranks_on_host) { return ranks_on_host + 2; }

/// Puts the ranks of hosts that run `per_host` each in order: host by host. `hosts` is not empty.
GangPlan plan_gang(const std::vector<HostFacts>& hosts, int per_host);

}  // namespace troupe::launch
