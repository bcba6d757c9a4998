#pragma once

#include <string>
#include <vector>

#include <troupe/detail/cluster_nodes.hpp>
#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// Where the ranks of a gang stand, for people: "rank 0 has returned; rank 1 (process 8 on node
/// w1) last printed 'epoch 3'; ...", of the first four. `signs` may be fewer than `places`.
std::string where_it_stands(const std::vector<Place>& places,
                            const std::vector<troupe::detail::RankSign>& signs,
                            bool first_has_returned);

}  // namespace troupe::tune
