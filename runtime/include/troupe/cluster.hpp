#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// How a driver finds its cluster, or what its private one has.
struct InitOptions {
  std::string address = {};  ///< HOST:PORT of a head; empty: a private cluster in this process
  std::string token_file =
      /// Of that cluster; empty: TROUPE_TOKEN, else where `troupe head` on this machine wrote it.
      {};
  std::string name = {};  ///< of this job, for `troupe status`; empty: the program's file name
  /// This job's part of the cluster beside other jobs': one of weight 2 gets twice what one of
  /// weight 1 gets, where both want more than there is. Above 0.
  double weight = 1;
  /// What this job's worker processes print appears on this program's standard error too, with who
  /// it was before each line. Off: only in their log files. (A private cluster without a folder to
  /// write logs to says so; its worker processes print where this program does.)
  bool worker_output = true;
  /// Private: cores of its one node; 0: as many as this process may use.
  double cpus = 0;
  std::optional<int> gpus = {};  ///< private: GPUs; none: those that are there
  /// Private: custom resources of its one node.
  std::vector<std::pair<std::string, double>> resources = {};
  /// Private: of memory for large values; 0: 30 % of what there is.
  std::uint64_t object_store_bytes = 0;
  /// Private: where large values go that memory has no room for; made where only it is missing;
  /// empty: /var/tmp.
  std::string spill_directory = {};
};

/// The session of a driver with its cluster. One at a time in a process; its end, wherever it is
/// destroyed, ends the job: its tasks, its actors and what they hold. A private cluster ends with
/// it. Lives in the driver's main thread.
class [[nodiscard]] Cluster {
 public:
  struct Impl;
  explicit Cluster(std::unique_ptr<Impl> impl);
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;
  ~Cluster();

  /// HOST:PORT of the head; of a private cluster the unix socket that it listens on.
  std::string address() const;
  /// Nodes, processes, actors, gangs and what waits with its reason: what `troupe status --json`
  /// prints. Asks the head.
  std::string status_json() const;

 private:
  const Impl& here() const;  ///< throws std::logic_error where it was moved from

  std::unique_ptr<Impl> impl_;
};

/// Connects this program to a cluster, or makes a private one in and under this process, which is
/// gone with it. In a worker process, which runs the same program, it does not return: call it
/// first in main(), before threads are started.
///
/// Where the cluster is, first that is given: `--address HOST:PORT` on the command line (both
/// spellings, `--address=...` too; they stay in argv, like `--token-file FILE`),
/// InitOptions::address, TROUPE_ADDRESS; else private. `--no-worker-output` there is
/// InitOptions::worker_output = false. Throws Disconnected (nobody answers there),
/// Refused (token or version, or options that make no sense, as a spill directory that cannot be
/// written; it says which), std::invalid_argument (a weight or an amount that is none),
/// std::logic_error for a second session.
[[nodiscard]] Cluster init(int argc, char** argv, InitOptions options = {});
/// Likewise, with the process's command line left alone.
[[nodiscard]] Cluster init(InitOptions options = {});

}  // namespace troupe
