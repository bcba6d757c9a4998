#include "node/program/program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "node/failures.hpp"
#include "os/machine.hpp"

namespace troupe::node {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

[[noreturn]] void fail_with_errno(const std::string& what) {
  throw Error(
      failure_of(Failure::Kind::Program, fmt::format("{}: {}", what, std::strerror(errno))));
}

std::uint64_t mtime_ns(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

std::vector<std::string> command_line() {
  std::vector<std::string> arguments;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

os::UniqueFd open_image(const std::string& path) {
  os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_with_errno("cannot open the program " + path);
  return file;
}

}  // namespace

Program read_program(wire::Program::Reader from) {
  Program program;
  program.path = from.getPath();
  program.machine = from.getMachine();
  program.device = from.getDevice();
  program.inode = from.getInode();
  program.size = from.getSize();
  program.mtime_ns = from.getMtimeNs();
  if (auto bytes = from.getSha256(); bytes.size() == sizeof(Digest)) {
    std::copy(bytes.begin(), bytes.end(), program.sha256.emplace().begin());
  }
  for (auto argument : from.getArguments()) program.arguments.emplace_back(argument);
  program.directory = from.getDirectory();
  if (from.getAtCommandLine()) program.audience = config::Audience::CommandLine;
  return program;
}

void write_program(wire::Program::Builder to, const Program& program) {
  to.setPath(program.path);
  to.setMachine(program.machine);
  to.setDevice(program.device);
  to.setInode(program.inode);
  to.setSize(program.size);
  to.setMtimeNs(program.mtime_ns);
  if (program.sha256)
    to.setSha256(capnp::Data::Reader(program.sha256->data(), program.sha256->size()));
  auto arguments = to.initArguments(static_cast<unsigned>(program.arguments.size()));
  for (unsigned i = 0; i < arguments.size(); ++i) arguments.set(i, program.arguments[i]);
  to.setDirectory(program.directory);
  to.setAtCommandLine(program.audience == config::Audience::CommandLine);
}

std::string program_machine_id() { return os::boot_id() + "/" + os::namespace_id("mnt"); }

Program describe_program(int argc, const char* const* argv) {
  std::error_code error;
  Program program;
  program.path = std::filesystem::read_symlink(kSelf, error);
  struct stat status {};
  if (error || ::stat(kSelf, &status) != 0) fail_with_errno(std::string("cannot read ") + kSelf);
  program.machine = program_machine_id();
  program.device = status.st_dev;
  program.inode = status.st_ino;
  program.size = static_cast<std::uint64_t>(status.st_size);
  program.mtime_ns = mtime_ns(status);
  program.arguments = argc > 0 ? std::vector<std::string>(argv, argv + argc) : command_line();
  program.directory = std::filesystem::current_path(error);
  program.audience = config::audience();
  return program;
}

std::string why_changed(const Program& program) {
  struct stat status {};
  if (::stat(program.path.c_str(), &status) != 0) {
    return fmt::format(
        "the program {} cannot be found any more ({}); restore it, or start the driver again",
        program.path, std::strerror(errno));
  }
  if (status.st_dev == program.device && status.st_ino == program.inode &&
      static_cast<std::uint64_t>(status.st_size) == program.size &&
      mtime_ns(status) == program.mtime_ns) {
    return {};
  }
  return fmt::format(
      "the program {} was rebuilt since the driver started ({} bytes then, {} now); start the "
      "driver again",
      program.path, program.size, status.st_size);
}

ProgramImage::ProgramImage() : ProgramImage(kSelf) {}
ProgramImage::ProgramImage(const std::string& path) : file_(open_image(path)) {}

const Digest& ProgramImage::sha256() {
  if (!sha256_) {
    const auto digest = digest_of(file_.get());
    if (const auto* failed = std::get_if<ReadFailed>(&digest)) {
      throw Error(failure_of(Failure::Kind::Program, "cannot read the program: " + failed->why));
    }
    sha256_ = std::get<Digest>(digest);
  }
  return *sha256_;
}

std::string ProgramImage::read(std::uint64_t offset, std::size_t bytes) const {
  std::string data(bytes, '\0');
  ssize_t got;
  do {
    got = ::pread(file_.get(), data.data(), data.size(), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) fail_with_errno("cannot read the program");
  data.resize(static_cast<std::size_t>(got));
  return data;
}

void serve_program_request(ProgramImage& image, wire::ProgramRequest::Reader request,
                           wire::ProgramChunk::Builder chunk) {
  chunk.setOffset(request.getOffset());
  try {
    if (request.getOffset() == kDigestOnly) {
      const auto& digest = image.sha256();
      chunk.setSha256(capnp::Data::Reader(digest.data(), digest.size()));
      return;
    }
    const auto data = image.read(request.getOffset(), kProgramChunkBytes);
    chunk.setData(
        capnp::Data::Reader(reinterpret_cast<const unsigned char*>(data.data()), data.size()));
  } catch (const Error& error) {
    chunk.setFailure(error.failure().message);
  }
}

}  // namespace troupe::node
