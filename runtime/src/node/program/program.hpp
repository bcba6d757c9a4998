#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/audience.hpp"
#include "node/program/digest.hpp"
#include "os/unique_fd.hpp"
#include "wire/message.capnp.h"

namespace troupe::node {

/// The program of a driver: which file, and what it was started with. A value.
struct Program {
  /// Absolute, on the driver's machine.
  std::string path;
  std::string machine;                                          ///< program_machine_id() there
  std::uint64_t device = 0, inode = 0, size = 0, mtime_ns = 0;  ///< is it still the same file
  /// Known only once somebody asked for it.
  std::optional<Digest> sha256;
  std::vector<std::string> arguments;  ///< argv of the driver
  std::string directory;               ///< its working directory
  /// For whom messages about it are worded.
  config::Audience audience = config::Audience::Api;
};

Program read_program(wire::Program::Reader from);
void write_program(wire::Program::Builder to, const Program& program);

/// Boot id and mount namespace: where equal, a path means the same file.
std::string program_machine_id();

/// The running process; without arguments (argc 0) they are read from /proc. Nothing is hashed.
/// Throws Error where /proc/self/exe cannot be read.
Program describe_program(int argc, const char* const* argv);

/// "" if the file at `program.path` is still the one the driver runs; else what differs and what to
/// do.
std::string why_changed(const Program& program);

/// The image of the running process, for nodes of other machines: what is read is what runs, even
/// where the file has been replaced or deleted since. Belongs to one thread.
class ProgramImage {
 public:
  ProgramImage();  ///< throws Error where /proc/self/exe cannot be opened
  explicit ProgramImage(const std::string& path);

  const Digest& sha256();  ///< computed at the first call, which takes about 1 s for each GB
  /// Fewer at the end; throws Error.
  std::string read(std::uint64_t offset, std::size_t bytes) const;

 private:
  os::UniqueFd file_;
  std::optional<Digest> sha256_;
};

inline constexpr std::size_t kProgramChunkBytes = std::size_t{1} << 20;
inline constexpr std::uint64_t kDigestOnly = ~std::uint64_t{0};  ///< as offset of a ProgramRequest

/// The driver's side of shipping: answers one request of a node. Without data for kDigestOnly; an
/// empty chunk means the end.
void serve_program_request(ProgramImage& image, wire::ProgramRequest::Reader request,
                           wire::ProgramChunk::Builder chunk);

}  // namespace troupe::node
