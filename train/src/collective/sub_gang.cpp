#include "collective/sub_gang.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include <fmt/format.h>

namespace troupe::train {

SubGang::SubGang(GangContext& whole, const std::vector<int>& members) : whole_(whole) {
  const auto whole_nodes = whole.node_ranks();
  std::map<int, int> numbers;  // of the whole gang's nodes, by the lowest new rank on each
  for (std::size_t r = 0; r < members.size(); ++r) {
    const int node = whole_nodes[static_cast<std::size_t>(members[r])];
    nodes_.push_back(numbers.try_emplace(node, static_cast<int>(numbers.size())).first->second);
    if (members[r] == whole.rank()) rank_ = static_cast<int>(r);
  }
}

int SubGang::local_rank() const {
  return static_cast<int>(std::count(nodes_.begin(), nodes_.begin() + rank_, node_rank()));
}
int SubGang::local_size() const {
  return static_cast<int>(std::count(nodes_.begin(), nodes_.end(), node_rank()));
}
int SubGang::node_count() const { return *std::max_element(nodes_.begin(), nodes_.end()) + 1; }

std::unique_ptr<SubGang> split_gang(Patience& patience, const std::string& name, int color,
                                    int key) {
  auto& gang = patience.gang();
  gang.rendezvous().set(fmt::format("{}/{}", name, gang.rank()), fmt::format("{} {}", color, key));
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < gang.size(); ++r) {
    const auto theirs = patience.await(fmt::format("{}/{}", name, r), r);
    int their_color = 0;
    int their_key = 0;
    std::sscanf(theirs.c_str(), "%d %d", &their_color, &their_key);
    if (their_color == color) members.emplace_back(their_key, r);
  }
  if (color == Communicator::kNoColor) return nullptr;
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& member : members) ranks.push_back(member.second);
  return std::make_unique<SubGang>(gang, ranks);
}

}  // namespace troupe::train
