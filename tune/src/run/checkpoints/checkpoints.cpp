#include <troupe/tune/detail/checkpoints.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/with.hpp>

namespace troupe::tune::detail {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNodePrefix = "node ";

/// The number and the path of "node N:/path".
std::optional<std::pair<std::uint32_t, std::string>> with_node(const std::string& name) {
  if (!name.starts_with(kNodePrefix)) return std::nullopt;
  std::uint32_t node = 0;
  const auto* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kNodePrefix.size(), end, node);
  if (error != std::errc{} || stop == end || *stop != ':') return std::nullopt;
  return std::pair(node, std::string(stop + 1, end));
}

Array<std::uint8_t> bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::streamoff>(in.tellg());
  std::vector<std::uint8_t> bytes(size > 0 ? static_cast<std::size_t>(size) : 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!in) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
  return Array<std::uint8_t>(std::move(bytes));
}

void write(const fs::path& file, const Array<std::uint8_t>& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", file.string()));
}

}  // namespace

PackedFolder pack_folder(const std::string& path) {
  if (fs::is_regular_file(path)) return {{"", bytes_of(path)}};
  if (!fs::is_directory(path))
    throw std::runtime_error(fmt::format("there is no checkpoint {}", path));
  PackedFolder folder;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file())
      folder.push_back({fs::relative(entry.path(), path).string(), bytes_of(entry.path())});
  }
  return folder;
}

void unpack_folder(const PackedFolder& folder, const std::string& path) {
  const auto beside = path + kBeingReceived;
  fs::remove_all(beside);
  const bool is_file = folder.size() == 1 && folder.front().name.empty();
  if (!is_file) fs::create_directories(beside);
  for (const auto& [name, bytes] : folder) {
    const auto relative = fs::path(name).lexically_normal();
    if (relative.is_absolute() || (!relative.empty() && *relative.begin() == ".."))
      throw std::runtime_error(
          fmt::format("a checkpoint holds a file '{}', which is outside of it", name));
    write(is_file ? fs::path(beside) : fs::path(beside) / relative, bytes);
  }
  fs::remove_all(path);
  fs::rename(beside, path);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool GangView::is_shared() const {
  return std::ranges::all_of(ranks, [](const auto& rank) { return rank.sees_marker; });
}

std::string CheckpointOrigins::named(const std::string& reported, const GangView& gang) {
  if (reported.empty() || gang.ranks.empty()) return reported;
  const auto& writer = gang.ranks.front();
  if (writer.sees_marker) sharing_node_ = writer.node;
  return named(reported, writer);
}

std::string CheckpointOrigins::named(const std::string& path,
                                     const troupe::detail::Surroundings& rank) {
  return rank.sees_marker ? path : fmt::format("{}{}:{}", kNodePrefix, rank.node, path);
}

std::string CheckpointOrigins::path_of(const std::string& name) {
  const auto found = with_node(name);
  return found ? found->second : name;
}

std::optional<std::uint32_t> CheckpointOrigins::own_node_of(const std::string& name) {
  const auto found = with_node(name);
  return found ? std::optional(found->first) : std::nullopt;
}

std::optional<std::uint32_t> CheckpointOrigins::node_of(const std::string& name) const {
  if (const auto node = own_node_of(name)) return node;
  return sharing_node_;
}

bool CheckpointOrigins::is_visible(const std::string& name,
                                   const troupe::detail::Surroundings& rank) {
  if (!rank.sees_checkpoint) return false;
  const auto found = with_node(name);
  return found ? found->first == rank.node : rank.sees_marker;
}

bool CheckpointOrigins::should_say_unshared() { return !std::exchange(said_unshared_, true); }

void CheckpointOrigins::add_spare_copy(std::string copy) {
  if (spare_copies_.size() == kMostSpareCopies) spare_copies_.erase(spare_copies_.begin());
  spare_copies_.push_back(std::move(copy));
}

CheckpointPlan plan_checkpoint(const std::string& name, const GangView& gang,
                               const std::string& copies, const CheckpointOrigins& origins) {
  const auto path = CheckpointOrigins::path_of(name);
  const auto sees = [&](const auto& rank) { return CheckpointOrigins::is_visible(name, rank); };
  const bool enough =
      gang.is_shared() ? sees(gang.ranks.front()) : std::ranges::all_of(gang.ranks, sees);
  if (enough) return {.paths = std::vector(gang.ranks.size(), path)};
  CheckpointPlan plan{.from = origins.node_of(name)};
  if (!plan.from || (gang.is_shared() && path == name))
    throw CheckpointGone("the checkpoint " + name + " is gone: rank 0 does not find it");
  for (std::size_t rank = 0; rank < gang.ranks.size(); ++rank) {
    const auto& at = gang.ranks[rank];
    // Nodes that do not share the folder with the driver may share it with each other.
    plan.paths.push_back(copies + std::to_string(at.node));
    if (at.local_rank == 0) plan.receivers.push_back(rank);
  }
  return plan;
}

Ref<PackedFolder> pack_on(std::uint32_t node, const std::string& path) {
  return with({.cpus = 0, .labels = {{"troupe.node", std::to_string(node)}}})
      .task<pack_folder>(path);
}

void check_packed(const Ref<PackedFolder>& packed, std::uint32_t node, const std::string& path) {
  const auto failure = packed.failure();
  if (!failure) return;
  using Kind = Failure::Kind;
  // The task could not read it, or its node is not there. Whatever else it was may pass.
  const bool is_gone = failure->kind == Kind::Task || failure->kind == Kind::Impossible;
  if (!is_gone) raise(*failure);
  throw CheckpointGone(
      fmt::format("the checkpoint {} on node {} is gone: {}", path, node, failure->message));
}

std::string unshared_notice(const GangView& gang, const std::string& marker) {
  const auto away =
      std::ranges::find(gang.ranks, false, &troupe::detail::Surroundings::sees_marker);
  return fmt::format(
      "node {} does not share the folder {} with this program: checkpoints stay on the node where "
      "they are written, and move through the object store to where they are needed",
      away->node, fs::path(marker).parent_path().string());
}

}  // namespace troupe::tune::detail
