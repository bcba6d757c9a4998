#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <troupe/detail/cluster_nodes.hpp>
#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// Where the ranks of a gang stand, for people: "rank 0 has returned; rank 1 (process 8 on node
/// w1) last printed 'epoch 3'; ...", of the first four. `signs` may be fewer than `places`.
/// `output_files`: which the ranks' programs print to, each on its machine; empty: what they print goes
/// to the logs of their processes.
std::string where_it_stands(const std::vector<Place>& places,
                            const std::vector<troupe::detail::RankSign>& signs,
                            bool first_has_returned,
                            const std::vector<std::filesystem::path>& output_files = {});

}  // namespace troupe::tune
