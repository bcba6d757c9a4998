#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "head/routes.hpp"
#include "transport/stall_detector.hpp"

namespace troupe::head {

/// What administrators ask of log files and of single objects, which lie on the nodes: each request
/// goes to every node, or to those that it names, and is answered once all of these have answered or
/// are gone, or after its patience with what there is. What the head itself stands still does not count.
/// Belongs to the head's loop.
class LogRequests {
 public:
  using Clock = std::chrono::steady_clock;
  using Answer = std::function<void(const nlohmann::json&)>;
  static constexpr std::chrono::seconds kPatience{10};
  static constexpr std::chrono::milliseconds kTick{200};  ///< how often tick() is to be called
  static constexpr std::size_t kMostWaiting = 64;
  /// Of the objects of all nodes that are asked: each is asked for its share at most.
  static constexpr std::size_t kMostObjects = 50'000;
  /// `nodes`: one at least.
  static std::uint64_t most_objects_of_each(std::uint64_t most, std::size_t nodes);

  struct Wanted {
    JobId job{};                               ///< none: of any
    ProcessId process{};                       ///< none: of all that the job has had
    std::map<ProcessId, std::uint64_t> known;  ///< where to go on in each file
    std::uint64_t most = 0;                    ///< bytes of each node; of objects: how many
    bool follows = false;                      ///< it is asked again: lines are waited for whole
    bool calls = false;                        ///< not what they have printed: what they have run
    bool running = false;                      ///< of calls: those that are under way
    bool objects = false;                      ///< not of processes: what stores hold
    ProcessId after{};                         ///< of calls: only of higher numbers
    std::set<NodeId> nodes = {};               ///< of these only; none: of all
    std::chrono::seconds patience = kPatience;
  };

  LogRequests(Routes& routes, Clock::time_point now) : routes_(routes) {
    stall_detector_.expect(now + kTick);
  }

  /// {"parts": [{"node", "node_name", "job", "process", "file", "text", "next", "more"}],
  /// "silent": [names of nodes that have not answered, or were lost before], "silent_nodes": [their
  /// numbers], "over": nothing can be added any more}, or {"error"}. Texts are hexadecimal: programs print any bytes, and JSON has
  /// none but UTF-8. Of calls, each text is a CallTrace, and the answer has "clocks" [{"node",
  /// "node_name", "ahead_ns", "error_ns"}]: how far the clock on the wall of a node is ahead of the
  /// head's, as the middle of question and answer has it, and by how much that may be wrong;
  /// "now_unix_ns" is the head's. Of objects, the answer has "objects" [{"node", "node_name",
  /// "object", "job", "owner", "bytes", "state", "copy", "pinned_by"}], the largest of each node, and
  /// "objects_in_all"; a process 0 among the pins is the node itself.
  void ask(const Wanted& wanted, Answer answer, Clock::time_point now);
  void on_reply(NodeId node, wire::LogReply::Reader reply);
  void node_gone(NodeId node);
  /// Nodes that the head itself has given up are gone too.
  void tick(Clock::time_point now);

 private:
  struct Waiting {
    Answer answer;
    std::map<NodeId, std::string> nodes;  // that have not answered, with their names
    std::map<NodeId, std::string> lost;   // that will not
    nlohmann::json parts = nlohmann::json::array();
    nlohmann::json clocks = nlohmann::json::array();
    nlohmann::json objects;  // null: nobody asks for them
    std::uint64_t objects_in_all = 0;
    std::uint64_t asked = 0;  // os::unix_ns()
    Clock::time_point until;
    bool over = false;
  };
  bool is_over(const Wanted& wanted) const;
  static void note_objects(Waiting& waiting, NodeId node, const std::string& name,
                           wire::LogReply::Reader reply);
  static void note_clock(Waiting& waiting, NodeId node, const std::string& name,
                         std::uint64_t clock);
  /// With its number where another node has that name.
  std::string name_of(NodeId node, const std::string& name) const;
  void settle(std::uint64_t id);
  void settle_where(const std::function<bool(Waiting&)>& over);

  Routes& routes_;
  transport::StallDetector stall_detector_{2 * kTick};
  std::map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_ = 0;
};

}  // namespace troupe::head
