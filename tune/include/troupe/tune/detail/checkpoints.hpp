#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/array.hpp>
#include <troupe/detail/trainable/trainable_worker.hpp>
#include <troupe/ref.hpp>

/// How a checkpoint comes to the nodes of the gang that goes on from it.
namespace troupe::tune::detail {

/// The checkpoint that an attempt was to go on from is not there any more.
class CheckpointGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A directory, or one file (of an empty name), as it travels through the object store.
struct PackedFile {
  std::string name;  ///< relative to the directory
  Array<std::uint8_t> bytes;
};
using PackedFolder = std::vector<PackedFile>;

/// Throws std::runtime_error, naming the path, if it is not there or cannot be read.
PackedFolder pack_folder(const std::string& path);
/// Makes `path` what was packed: whole, or not at all. What was there before goes. Throws
/// std::runtime_error with the cause.
void unpack_folder(const PackedFolder& folder, const std::string& path);
/// Stands behind the path of what unpack_folder has not completed.
inline constexpr auto* kBeingReceived = ".new";

/// Whether there is a file or a directory of that name here. Never throws.
bool is_there(const std::string& path);

/// Where the ranks of one gang are, and what they see.
struct GangView {
  std::vector<troupe::detail::Surroundings> ranks = {};
  /// Whether every node of the gang sees the run's folder as the driver does.
  bool is_shared() const;
};

/// What the search knows of where checkpoints lie. A checkpoint in a folder that a node does not
/// share with the driver is named "node N:/path", since another node may have another of the same
/// path. One for a run, used by its thread.
class CheckpointOrigins {
 public:
  /// The search's name of what rank 0 of a gang reported. Empty for an empty one.
  std::string named(const std::string& reported, const GangView& gang);
  /// Its name of what lies on the rank's node.
  static std::string named(const std::string& path, const troupe::detail::Surroundings& rank);
  /// The path on its node.
  static std::string path_of(const std::string& name);
  /// The node of its name; none: the folder that it is in is shared with the driver.
  static std::optional<std::uint32_t> own_node_of(const std::string& name);
  /// A node that can read it: the one of its name, or one that shares the folder with the driver;
  /// none: unknown.
  std::optional<std::uint32_t> node_of(const std::string& name) const;
  /// Whether the rank sees this very checkpoint in its own file system.
  static bool is_visible(const std::string& name, const troupe::detail::Surroundings& rank);

  /// True the first time that it is asked.
  bool should_say_unshared();

  /// The name of a copy that the attempt which was sent it has no more use for.
  void add_spare_copy(std::string copy);
  /// Those since the last call, the last kMostSpareCopies of them.
  std::vector<std::string> take_spare_copies() { return std::exchange(spare_copies_, {}); }
  static constexpr std::size_t kMostSpareCopies = 10'000;

 private:
  std::optional<std::uint32_t> sharing_node_;  // that was seen last
  bool said_unshared_ = false;
  std::vector<std::string> spare_copies_;
};

/// Where the ranks of a gang read the checkpoint that they go on from.
struct CheckpointPlan {
  std::vector<std::string> paths = {};  ///< for each rank
  /// The node that it comes from, to the copies; none: it is there already.
  std::optional<std::uint32_t> from = {};
  /// With `from`: the ranks that each receive the copy of their node.
  std::vector<std::size_t> receivers = {};
};
/// What is to be done so that every rank has the checkpoint `name`: nothing where all who have to
/// see it do so, else a copy for each node, whose path is `copies` and the node's number. Throws
/// CheckpointGone.
CheckpointPlan plan_checkpoint(const std::string& name, const GangView& gang,
                               const std::string& copies, const CheckpointOrigins& origins);

/// Reads a checkpoint on the node where it lies, by a task without resources. Returns at once.
Ref<PackedFolder> pack_on(std::uint32_t node, const std::string& path);
/// Of one that is ready: throws CheckpointGone where it could not be read, and what else failed.
void check_packed(const Ref<PackedFolder>& packed, std::uint32_t node, const std::string& path);

/// One sentence for people about a run whose nodes do not share its folder.
std::string unshared_notice(const GangView& gang, const std::string& marker);

}  // namespace troupe::tune::detail
