#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor/finding.hpp"
#include "node/limits/cpus.hpp"
#include "os/cgroup.hpp"
#include "os/machine.hpp"
#include "store/memory/memory_room.hpp"
#include "store/types.hpp"

namespace troupe::cli {
namespace {

using store::format_bytes;

constexpr rlim_t kFewFiles = 4096, kLeastFiles = 256;
constexpr rlim_t kFewProcesses = 1024, kLeastProcesses = 64;
constexpr rlim_t kLittleLocked = rlim_t{64} << 20;
constexpr std::uint64_t kLittleShared = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 20;
constexpr double kStoreShare = 0.3;  // of memory, unless --object-store-memory is given

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

std::string bytes_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : format_bytes(limit);
}

void check_files(Findings& findings) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto value =
      fmt::format("{}, up to {}", limit_text(limit.rlim_cur), limit_text(limit.rlim_max));
  const std::string remedy =
      "raise the hard limit (nofile in /etc/security/limits.conf, LimitNOFILE= of a systemd "
      "unit): a node takes two descriptors for each of its processes and actors";
  if (limit.rlim_max >= kFewFiles) return findings.ok("open files (ulimit -n)", value);
  limit.rlim_max < kLeastFiles ? findings.problem("open files (ulimit -n)", value, remedy)
                               : findings.note("open files (ulimit -n)", value, remedy);
}

void check_processes(Findings& findings) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  const auto value = limit_text(limit.rlim_cur);
  const std::string what = "processes and threads (ulimit -u)";
  if (::geteuid() == 0) return findings.ok(what, value + ", which does not bind root");
  if (limit.rlim_cur >= kFewProcesses) return findings.ok(what, value);
  const std::string remedy =
      "raise it (nproc in /etc/security/limits.conf): each worker process has several threads, and "
      "all of this user's count";
  limit.rlim_cur < kLeastProcesses ? findings.problem(what, value, remedy)
                                   : findings.note(what, value, remedy);
}

void check_locked_memory(Findings& findings, bool moves_by_rdma) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string what = "locked memory (ulimit -l)";
  const auto value = bytes_text(limit.rlim_cur);
  if (!moves_by_rdma)
    return findings.ok(what, value + "; nothing here needs it, as there is no InfiniBand");
  if (limit.rlim_cur >= kLittleLocked) return findings.ok(what, value);
  findings.note(what, value,
                "set it to unlimited (memlock in /etc/security/limits.conf): NCCL registers its "
                "buffers with InfiniBand, which locks them");
}

/// NCCL and PyTorch's data loaders fail where there is none of it. Of these the former needs GPUs.
void check_shared_memory(Findings& findings, bool gpus) {
  struct statvfs shared {};
  const std::string what = "/dev/shm";
  const std::string why =
      "NCCL between the ranks of a machine, and PyTorch's data loaders, need it; the object store "
      "does not";
  const auto lacks = [&](const std::string& value, const std::string& remedy) {
    gpus ? findings.problem(what, value, remedy) : findings.note(what, value, remedy);
  };
  if (::statvfs("/dev/shm", &shared) != 0) {
    return lacks("not there",
                 "mount a tmpfs there (mkdir -m 1777 /dev/shm; mount -t tmpfs tmpfs "
                 "/dev/shm): " +
                     why);
  }
  const std::uint64_t size = shared.f_blocks * shared.f_frsize;
  const std::uint64_t free = shared.f_bavail * shared.f_frsize;
  const auto value = fmt::format("{}, {} free", format_bytes(size), format_bytes(free));
  if (free >= kLittleShared) return findings.ok(what, value);
  const std::string remedy =
      "make it larger (docker run --shm-size=8g, or mount -o remount,size=8G /dev/shm), or remove "
      "what lies in it: " +
      why;
  free < kLeastShared ? lacks(value, remedy) : findings.note(what, value, remedy);
}

std::uint64_t whole(double bytes) { return static_cast<std::uint64_t>(std::max(bytes, 0.0)); }

void check_cores(Findings& findings) {
  const auto cores = std::thread::hardware_concurrency();
  const auto limit = os::cgroup_cpu_limit();
  const auto usable = os::usable_cpus();
  const auto cpus = fmt::format("{:g} usable{}", usable,
                                limit ? fmt::format(", the cgroup's limit is {:g}", *limit)
                                      : fmt::format(" of {}, no limit by a cgroup", cores));
  const auto offered = node::offered_cpus(0, usable);
  if (offered <= usable) return findings.ok("cores", cpus);
  findings.note("cores", cpus,
                fmt::format("raise the limit (docker run --cpus): a node offers {0:g} all the "
                            "same, because a task asks for one core unless it says otherwise, and "
                            "what runs here takes longer for it. With --cpus {1:g} "
                            "(InitOptions::cpus) a node offers {1:g}",
                            offered, usable));
}

void check_memory_limit(Findings& findings) {
  const auto memory = os::tightest_memory_cgroup();
  if (!memory) return findings.ok("memory limit", "none by a cgroup");
  const auto value =
      fmt::format("{} by {}, of which {} are taken", format_bytes(memory->limit_bytes),
                  memory->directory, format_bytes(memory->used_bytes));
  if (memory->used_bytes < memory->limit_bytes / 10 * 9) return findings.ok("memory limit", value);
  findings.note("memory limit", value,
                "raise it (docker run --memory, MemoryMax= of a systemd unit), or end what takes "
                "memory there: the kernel kills processes that go beyond it");
}

void check_process_limit(Findings& findings) {
  const auto limit = os::cgroup_process_limit();
  const auto value = limit ? std::to_string(*limit) : "no limit";
  if (!limit || *limit >= kFewProcesses) return findings.ok("processes by the cgroup", value);
  findings.note(
      "processes by the cgroup", value,
      "raise pids.max (docker run --pids-limit, TasksMax= of a systemd unit): each worker "
      "process has several threads");
}

}  // namespace

void check_limits(Findings& findings, bool moves_by_rdma) {
  check_files(findings);
  check_processes(findings);
  check_locked_memory(findings, moves_by_rdma);
}

void check_memory(Findings& findings, bool gpus) {
  check_shared_memory(findings, gpus);
  const auto all = os::usable_memory_bytes();
  const auto available = static_cast<double>(store::memory_room().available);
  const auto store = kStoreShare * all;
  const auto value = fmt::format("{} usable, {} of it available; the object store takes up to {}",
                                 format_bytes(whole(all)), format_bytes(whole(available)),
                                 format_bytes(whole(store)));
  if (available >= store) return findings.ok("memory", value);
  findings.note("memory", value,
                "end what else takes memory here, or give the node less for large values with "
                "--object-store-memory: those that memory has no room for go to its disk");
}

void check_cgroup(Findings& findings) {
  check_cores(findings);
  check_memory_limit(findings);
  check_process_limit(findings);
}

}  // namespace troupe::cli
