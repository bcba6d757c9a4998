#include "node/output/output_tail.hpp"

#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "waiting.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLine = 128;
constexpr std::uint64_t kLines = 4000;  // of each process: half a MiB
/// Of a line, as the limits count it.
constexpr std::uint64_t kCost = kLine + OutputTail::kLineBytes;
/// What is read at once, as the limits count it: they may be passed by that much.
constexpr std::uint64_t kPiece = (std::uint64_t{16} << 10) / kLine * kCost;
constexpr OutputLimits kLimits{
    .process_bytes = 64 << 10, .node_bytes = 160 << 10, .batch = 1ms, .retry = 1ms};

/// Processes that have each printed more than may be shown in a second, as the head is told of them.
class Flood {
 public:
  explicit Flood(std::uint64_t processes) {
    for (std::uint64_t process = 1; process <= processes; ++process) {
      const auto file = (folder_.path / (std::to_string(process) + ".log")).string();
      tail_.add(ProcessId(process), {.job = JobId(1), .file = file, .labels = {}});
      std::ofstream out(file, std::ios::binary);
      for (std::uint64_t i = 0; i < kLines; ++i) out << std::string(kLine - 1, 'x') << '\n';
    }
  }
  ~Flood() { tail_.stop(); }
  Flood(const Flood&) = delete;

  /// What is read at one moment is sent in one message: it is of one second.
  void run_until_told(std::size_t messages) {
    test::run_until(loop_, "what was printed", [&] { return told_.size() >= messages; });
  }
  OutputTail& tail() { return tail_; }
  std::uint64_t cost(std::size_t message, std::uint64_t process) {
    return told_.at(message)[process].bytes / kLine * kCost;
  }
  std::uint64_t cost(std::size_t message) {
    std::uint64_t sum = 0;
    for (const auto& [process, told] : told_.at(message)) sum += told.bytes / kLine * kCost;
    return sum;
  }
  /// Shown and left out, by all messages.
  std::uint64_t accounted_for(std::uint64_t process) {
    std::uint64_t sum = 0;
    for (auto& told : told_) sum += told[process].bytes + told[process].left_out;
    return sum;
  }
  std::size_t messages() const { return told_.size(); }

 private:
  struct Told {
    std::uint64_t bytes = 0;
    std::uint64_t left_out = 0;
  };

  void take(transport::Outgoing& message) {
    auto& told = told_.emplace_back();
    for (const auto process : message.root().getWorkerOutput().asReader().getProcesses()) {
      told[process.getProcess()].bytes += process.getLines().size();
      told[process.getProcess()].left_out += process.getLeftOut();
    }
  }

  test::TemporaryDirectory folder_;
  boost::asio::io_context loop_{1};
  std::vector<std::map<std::uint64_t, Told>> told_;
  OutputTail tail_{loop_,
                   kLimits,
                   {.to_head = [this](transport::Outgoing& message) { take(message); },
                    .is_held_up = [] { return false; }}};
};

TEST_CASE("what is shown of a process in a second is bounded, and the rest is counted",
          "[node][output]") {
  Flood flood(1);
  flood.run_until_told(1);
  CHECK(flood.cost(0, 1) >= kLimits.process_bytes - kPiece);
  CHECK(flood.cost(0, 1) <= kLimits.process_bytes + kPiece);
  flood.tail().finish(ProcessId(1));
  CHECK(flood.accounted_for(1) == kLines * kLine);
}

TEST_CASE("what is shown of all processes of a node in a second is bounded", "[node][output]") {
  constexpr std::uint64_t kProcesses = 6;
  Flood flood(kProcesses);
  flood.run_until_told(1);
  CHECK(flood.cost(0) >= kLimits.node_bytes - kPiece);
  CHECK(flood.cost(0) <= kLimits.node_bytes + kPiece);
  for (std::uint64_t process = 1; process <= kProcesses; ++process)
    CHECK(flood.cost(0, process) <= kLimits.process_bytes + kPiece);
}

TEST_CASE("the last words of a process that ends are shown besides the share of its node",
          "[node][output]") {
  constexpr std::uint64_t kProcesses = 6;
  Flood flood(kProcesses);
  flood.run_until_told(1);
  for (std::uint64_t process = 1; process <= kProcesses; ++process) {
    const auto before = flood.messages();
    flood.tail().finish(ProcessId(process));
    REQUIRE(flood.messages() == before + 1);
    CHECK(flood.cost(before, process) > 0);
    CHECK(flood.cost(before) <= kLimits.process_bytes + kPiece);
    CHECK(flood.accounted_for(process) == kLines * kLine);
  }
}

TEST_CASE("a process shows 256 KiB and a node 2 MiB in a second unless said otherwise",
          "[node][output]") {
  CHECK(OutputLimits{}.process_bytes == std::uint64_t{256} << 10);
  CHECK(OutputLimits{}.node_bytes == std::uint64_t{2} << 20);
}

}  // namespace
}  // namespace troupe::node
