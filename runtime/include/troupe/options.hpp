#pragma once
#include <type_traits>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Where the ranks of a gang go. All or nothing in every case.
enum class Strategy : unsigned char {
  Pack,          ///< on as few nodes as possible
  Spread,        ///< on as many nodes as possible
  StrictPack,    ///< on one node, or not at all
  StrictSpread,  ///< each on a node of its own, or not at all
};
inline constexpr auto Pack = Strategy::Pack;
inline constexpr auto Spread = Strategy::Spread;
inline constexpr auto StrictPack = Strategy::StrictPack;
inline constexpr auto StrictSpread = Strategy::StrictSpread;

using NamedAmount = std::pair<std::string_view, double>;
using NamedLabel = std::pair<std::string_view, std::string_view>;

/// What a task, an actor or each rank of a gang needs, given before the call: `with({.gpus =
/// 1}).spawn<T>()`. Trivially destructible on purpose (g++ 12 destroys brace-built temporaries
/// twice in a co_await expression). `with`, `gang` and `place` copy at once, so that the views in it
/// need to live only until they return. A program that keeps or returns options keeps what `with`
/// returns, or RankOptions.
struct Options {
  /// CPUs to reserve; a fraction shares one. -1: 1 for a task and for each rank of a gang, none for
  /// an actor, which then goes to the node with the fewest such actors for its CPUs.
  double cpus = -1;
  double gpus = 0;       ///< GPUs; below 1 shares one GPU, above 1 must be whole
  double memory_gb = 0;  ///< main memory in 10^9 bytes, for placement only
  /// How often a task runs again if its process died after it had begun; -1: 3 times; 0: never.
  /// Actors are never restarted.
  int retries = -1;
  /// The name of an actor, for troupe::find; tasks and ranks have none. A plain name is unique in
  /// its job and found only there. A name with a namespace, such as "shared/counter", is unique in
  /// its cluster.
  std::string_view name = {};
  /// The actor lives until kill() or until its cluster ends, and any program finds it by its name,
  /// which must have a namespace. It has a job of its own: see docs/detached.md.
  bool detached = false;
  bool spread = false;                                ///< prefer the emptiest node to the fullest
  std::initializer_list<NamedAmount> resources = {};  ///< custom resources by name
  /// Only on nodes that have all these labels. Each node has troupe.node=<its number>, besides the
  /// labels that it was given.
  std::initializer_list<NamedLabel> labels = {};
};
static_assert(std::is_trivially_destructible_v<Options>);

/// What each rank of a run or of a search needs (train::RunOptions, tune::Each): of Options what a
/// rank can have, with storage of its own. A value; may be kept, copied and returned.
struct RankOptions {
  double cpus = -1;      ///< CPUs to reserve; a fraction shares one. -1: 1
  double gpus = 0;       ///< GPUs; below 1 shares one GPU, above 1 must be whole
  double memory_gb = 0;  ///< main memory in 10^9 bytes, for placement only
  std::vector<std::pair<std::string, double>> resources = {};  ///< custom resources by name
  /// Only on nodes that have all these labels, as in Options.
  std::vector<std::pair<std::string, std::string>> labels = {};
};

namespace detail {
/// Options with storage of its own. Amounts are in units; zero amounts are left out.
struct RequestOptions {
  std::vector<std::pair<std::string, double>> resources{{"cpu", 1.0}};
  bool cpus_by_kind = true;  ///< the "cpu" among them is a task's and a rank's, no actor's
  std::vector<std::pair<std::string, std::string>> labels;
  int retries = -1;
  std::string name;
  bool detached = false;
  bool spread = false;
};
/// Throws std::invalid_argument, naming the field, where an amount is negative, not finite or a
/// fraction above one GPU.
RequestOptions own(const Options& options);
/// The same, for each rank of a gang.
RequestOptions request_of(const RankOptions& options);
/// Throws std::invalid_argument, naming the field, where a task cannot have what is asked for.
const RequestOptions& for_task(const RequestOptions& options);
/// The same of an actor, which has no CPU where its options do not say how many.
RequestOptions for_actor(const RequestOptions& options);
/// The same of each rank of a gang.
const RequestOptions& for_rank(const RequestOptions& options);
}  // namespace detail
}  // namespace troupe
