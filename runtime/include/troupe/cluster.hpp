#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// How a driver finds its cluster, or what its private cluster has.
struct InitOptions {
  std::string address = {};  ///< HOST:PORT of a head; empty: a private cluster in this process
  std::filesystem::path token_file =
      /// Of that cluster; empty: TROUPE_TOKEN, else the file that
      /// TROUPE_TOKEN_FILE names, else where `troupe head` on this machine wrote it.
      {};
  std::string name = {};  ///< of this job, for `troupe status`; empty: the program's file name
  /// This job's share of the cluster relative to other jobs: a job of weight 2 gets twice what one
  /// of weight 1 gets, if both want more than there is. Above 0.
  double weight = 1;
  /// What this job's worker processes print appears on this program's standard error too, each line
  /// after the name of the process. Off: only in their log files. (A private cluster without a
  /// folder for logs says so; its worker processes print where this program does.)
  bool worker_output = true;
  /// Off: each such line as it was printed, without the name of its process, for programs whose
  /// lines say themselves who prints.
  bool worker_names = true;
  /// Tells the cluster the SHA-256 of this program now, which takes about 1 s for each GB. A node of
  /// another machine that has the program (in its cache, or because it is Troupe's own `troupe`) can
  /// then start it for a detached actor that is placed after this driver has ended.
  bool hash_program = false;
  /// Private: cores of its one node; 0: as many as this process may use, and at least one, which the
  /// cluster says on standard error where a cgroup allows less.
  double cpus = 0;
  std::optional<int> gpus = {};  ///< private: GPUs; none: those that are there
  /// Private: custom resources of its one node.
  std::vector<std::pair<std::string, double>> resources = {};
  /// Private: bytes of memory for large values; 0: 30 % of the machine's.
  std::uint64_t object_store_bytes = 0;
  /// Private: the folder for large values that do not fit in memory; created if only its last part
  /// is missing; empty: /var/tmp.
  std::filesystem::path spill_directory = {};
};

/// The session of a driver with its cluster. A process has at most one at a time. Its destruction
/// ends the job, with the job's tasks, actors and what they hold, and a private cluster. It is used
/// on the driver's main thread.
class [[nodiscard]] Cluster {
 public:
  struct Impl;
  explicit Cluster(std::unique_ptr<Impl> impl);
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;
  ~Cluster();

  /// HOST:PORT of the head; for a private cluster the unix socket of the head.
  std::string address() const;
  /// Nodes, processes, actors, gangs, and waiting requests with their reasons, as `troupe status
  /// --json` prints them. Asks the head.
  std::string status_json() const;

 private:
  const Impl& here() const;  ///< throws std::logic_error where it was moved from

  std::unique_ptr<Impl> impl_;
};

/// Connects this program to a cluster, or makes a private cluster, which ends with this process. In
/// a worker process, which runs the same program, init does not return: call it first in main(),
/// before threads are started.
///
/// The cluster's address is the first of these that is given: `--address HOST:PORT` (or
/// `--address=HOST:PORT`) on the command line, InitOptions::address, TROUPE_ADDRESS. Without any
/// the cluster is private. `--token-file FILE` on the command line names the token, and
/// `--no-worker-output` means InitOptions::worker_output = false. All these arguments stay in argv.
///
/// Throws Disconnected (no answer at the address), Refused (a wrong token or version, or invalid
/// options such as a spill directory that cannot be written; it says which),
/// std::invalid_argument (an invalid weight or amount), std::logic_error for a second session.
[[nodiscard]] Cluster init(int argc, char** argv, InitOptions options = {});
/// The same, without reading the process's command line.
[[nodiscard]] Cluster init(InitOptions options = {});

}  // namespace troupe
