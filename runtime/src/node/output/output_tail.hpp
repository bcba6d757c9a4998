#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "calls/output/label_history.hpp"
#include "ids/ids.hpp"
#include "node/output/labelled_lines.hpp"
#include "node/output/line_cutter.hpp"
#include "node/output/output_budget.hpp"
#include "os/unique_fd.hpp"
#include "transport/connection.hpp"

namespace troupe::node {

using runtime::JobId;
using runtime::ProcessId;

struct OutputLimits {
  /// In a second, of one process; each line counts kLineBytes more, for what is put before it.
  std::uint64_t process_bytes = std::uint64_t{256} << 10;
  std::uint64_t node_bytes = std::uint64_t{2} << 20;  ///< likewise, of all of a node
  std::chrono::milliseconds batch{50};                ///< that lines wait for others
  std::chrono::milliseconds retry{250};  ///< of what was over its limit, or cannot be watched
};

/// What the worker processes of a node print, on its way to the head: follows the ends of their log
/// files and sends whole lines, in batches. Within limits: what is too much is left out here, and
/// counted, but not in the files. Lives on the node's loop.
///
/// A file that somebody shortens is followed from its new begin, and its lines have no function any
/// more, since that is known by place. One that is removed or renamed can be followed no more. Both
/// are said among the lines of its process.
///
///   [idle] --a file has grown--> [gathering] --batch over--> [idle], or [gathering] again where more waits
class OutputTail {
 public:
  static constexpr std::uint64_t kLineBytes = 64;

  struct Callbacks {
    std::function<void(transport::Outgoing&)> to_head;
    std::function<bool()> is_held_up;  ///< the head takes no more now
  };
  struct Source {
    JobId job{};
    std::string file;
    /// What ran in the process while its file was written from `position` on.
    std::function<std::vector<runtime::LabelHistory::Span>(std::uint64_t position)> labels;
  };

  OutputTail(boost::asio::io_context& loop, OutputLimits limits, Callbacks callbacks);
  ~OutputTail();

  /// A process that is about to start: what its file holds by now is not its own. Anew where it is
  /// known.
  void add(ProcessId process, Source source);
  void started(ProcessId process, pid_t pid);
  /// It has ended: the rest is sent, and it is forgotten.
  void finish(ProcessId process);
  /// Sends the end of all that there is of that job, a second's worth, and how much was left out
  /// before: its driver is about to leave, so a line that has no end yet is sent as it is.
  void flush(JobId job);
  /// Nothing is sent any more.
  void stop();

 private:
  using Clock = OutputBudget::Clock;
  struct Followed;

  void watch(const std::string& file);
  void wait_for_growth();
  void gather(std::chrono::milliseconds time);
  void read_events();
  /// -> the folders that are watched no more.
  void read_events(std::set<std::string>& lost);
  void send_grown();
  /// -> false: more waits.
  bool read(Followed& followed);
  void read_last_words(Followed& followed);
  /// Notices what was done to the file besides writing at its end. -> bytes that were not read yet.
  static std::uint64_t look(Followed& followed);
  void read_bytes(Followed& followed, std::uint64_t bytes);
  enum class Unfinished : std::uint8_t { Kept, Sent };
  void send(const std::set<ProcessId>& processes, Unfinished unfinished);
  static std::vector<LabelledLines> take_lines(Followed& followed);

  boost::asio::io_context& loop_;
  const OutputLimits limits_;
  Callbacks callbacks_;
  OutputBudget budget_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer timer_;
  bool gathering_ = false;
  bool looks_by_time_ = false;          // a folder cannot be watched
  std::map<int, std::string> folders_;  // that are watched, by the watch's number
  std::unordered_map<ProcessId, std::unique_ptr<Followed>> followed_;
  std::unordered_map<std::string, ProcessId> by_name_;  // of the file, without its folder
  std::set<ProcessId> grown_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::node
