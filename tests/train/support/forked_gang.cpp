#include "support/forked_gang.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

namespace troupe::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kEntries = 512;
constexpr std::size_t kRanks = 64;

struct Entry {
  std::atomic<int> state;  // 0: free, 1: being written, 2: there
  char key[128];
  char value[1024];
  std::size_t length;
  pid_t writer;
};

struct Record {
  std::atomic<int> state;  // 0: running, 1: came to its end, 2: threw
  char type[64];
  char message[2048];
};

/// What parent and ranks share.
struct Board {
  std::atomic<std::uint32_t> broken;
  char why[512];
  std::atomic<std::size_t> entries;
  Entry table[kEntries];
  Record records[kRanks];
};

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const auto length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

class Table final : public Rendezvous {
 public:
  explicit Table(Board& board) : board_(board) {}

  void set(std::string_view key, std::string_view value) override {
    const auto index = board_.entries.fetch_add(1);
    expect(index < kEntries, [&] {
      return fmt::format("room for the rendezvous entry {}, of which the gang has {}", key,
                         kEntries);
    });
    auto& entry = board_.table[index];
    expect(key.size() < sizeof entry.key && value.size() <= sizeof entry.value,
           "a rendezvous entry that fits");
    copy_text(entry.key, key);
    std::memcpy(entry.value, value.data(), value.size());
    entry.length = value.size();
    entry.writer = ::getpid();
    entry.state.store(2, std::memory_order_release);
    for (std::size_t i = 0; i < index; ++i) refuse_another(board_.table[i], key, value);
  }

  std::string get(std::string_view key, std::chrono::milliseconds timeout) override {
    std::string value;
    const bool found = eventually(
        [&] {
          if (board_.broken.load() != 0)
            throw GangBroken(Failure{.kind = Failure::Kind::GangBroken, .message = board_.why});
          return find(key, value);
        },
        timeout);
    if (!found)
      throw TimedOut(
          Failure{.kind = Failure::Kind::TimedOut, .message = fmt::format("nobody set {}", key)});
    return value;
  }

 private:
  /// The rank that came first has set the key. A rank may set its own again, as one does that makes
  /// one context after another.
  static void refuse_another(const Entry& entry, std::string_view key, std::string_view value) {
    expect(eventually([&] { return entry.state.load(std::memory_order_acquire) == 2; }),
           "an entry that was begun is written");
    if (entry.writer != ::getpid() && key == entry.key &&
        value != std::string_view(entry.value, entry.length)) {
      throw Refused(Failure{.kind = Failure::Kind::Refused,
                            .message = fmt::format("{} has another value already", key)});
    }
  }
  bool find(std::string_view key, std::string& value) const {
    for (const auto& entry : board_.table) {
      if (entry.state.load(std::memory_order_acquire) != 2 || key != entry.key) continue;
      value.assign(entry.value, entry.length);
      return true;
    }
    return false;
  }
  Board& board_;
};

class ForkedContext final : public GangContext {
 public:
  ForkedContext(Board& board, std::vector<int> node_ranks, int rank)
      : board_(board), table_(board), nodes_(std::move(node_ranks)), rank_(rank) {}
  std::uint64_t id() const override { return 1; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(nodes_.size()); }
  int local_rank() const override {
    return static_cast<int>(std::count(nodes_.begin(), nodes_.begin() + rank_, node_rank()));
  }
  int local_size() const override {
    return static_cast<int>(std::count(nodes_.begin(), nodes_.end(), node_rank()));
  }
  int node_rank() const override { return nodes_[static_cast<std::size_t>(rank_)]; }
  int node_count() const override { return *std::max_element(nodes_.begin(), nodes_.end()) + 1; }
  std::vector<int> node_ranks() const override { return nodes_; }
  std::uint32_t node() const override { return static_cast<std::uint32_t>(node_rank()) + 1; }
  std::string host() const override { return "127.0.0.1"; }
  Rendezvous& rendezvous() override { return table_; }
  const std::atomic<std::uint32_t>& broken() const override { return board_.broken; }
  Failure why_broken() const override {
    return {.kind = Failure::Kind::ProcessDied,
            .message = board_.broken.load() != 0 ? board_.why : ""};
  }
  /// Another process breaks this gang, and collectives poll its word.
  std::shared_ptr<void> on_broken(std::function<void()> /*then*/) override { return nullptr; }

 private:
  Board& board_;
  Table table_;
  std::vector<int> nodes_;
  int rank_;
};

void note(Record& record, int state, std::string_view type, std::string_view message) {
  copy_text(record.type, type);
  copy_text(record.message, message);
  record.state.store(state, std::memory_order_release);
}

void run_rank(Board& board, const ForkedGang& gang, int rank,
              const std::function<void(GangContext&)>& body) {
  auto& record = board.records[rank];
  try {
    ForkedContext context(board, gang.node_ranks, rank);
    body(context);
    note(record, 1, "", "");
  } catch (const GangBroken& e) {
    note(record, 2, "GangBroken", e.what());
  } catch (const TimedOut& e) {
    note(record, 2, "TimedOut", e.what());
  } catch (const Impossible& e) {
    note(record, 2, "Impossible", e.what());
  } catch (const std::invalid_argument& e) {
    note(record, 2, "invalid_argument", e.what());
  } catch (const std::exception& e) {
    note(record, 2, "other", e.what());
  }
}

Board* make_board() {
  void* at =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return new (at) Board{};
}

pid_t fork_rank(Board& board, const ForkedGang& gang, int rank,
                const std::function<void(GangContext&)>& body) {
  const auto parent = ::getpid();
  const auto child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  run_rank(board, gang, rank, body);
  ::_exit(0);
}

/// Waits for all, plays the head for those who die, kills what is left at the limit.
void await(Board& board, const ForkedGang& gang, std::vector<pid_t> pids,
           std::vector<Outcome>& outcomes) {
  std::size_t left = pids.size();
  const bool all = eventually(
      [&] {
        for (std::size_t r = 0; r < pids.size(); ++r) {
          int status = 0;
          if (pids[r] <= 0 || ::waitpid(pids[r], &status, WNOHANG) != pids[r]) continue;
          pids[r] = 0;
          --left;
          if (!WIFSIGNALED(status)) continue;
          outcomes[r].signal = WTERMSIG(status);
          if (!gang.announce_deaths) continue;
          copy_text(board.why, fmt::format("rank {} was killed by signal {}", r, WTERMSIG(status)));
          board.broken.store(1);
        }
        return left == 0;
      },
      gang.limit);
  if (all) return;
  for (std::size_t r = 0; r < pids.size(); ++r) {
    if (pids[r] <= 0) continue;
    ::kill(pids[r], SIGKILL);
    ::waitpid(pids[r], nullptr, 0);
    outcomes[r].signal = SIGKILL;
    outcomes[r].message = "still ran at the test's limit";
  }
}

}  // namespace

ForkedGang ForkedGang::on_nodes(int ranks, int nodes) {
  ForkedGang gang;
  for (int r = 0; r < ranks; ++r) gang.node_ranks.push_back(r % nodes);
  return gang;
}

std::vector<Outcome> ForkedGang::run(const std::function<void(GangContext&)>& rank) const {
  auto* board = make_board();
  std::vector<pid_t> pids;
  for (int r = 0; r < static_cast<int>(node_ranks.size()); ++r)
    pids.push_back(fork_rank(*board, *this, r, rank));
  std::vector<Outcome> outcomes(pids.size());
  await(*board, *this, pids, outcomes);
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    const auto& record = board->records[r];
    if (record.state.load(std::memory_order_acquire) == 1) continue;
    outcomes[r].threw = record.state.load() == 2;
    outcomes[r].type = record.type;
    if (outcomes[r].threw)
      outcomes[r].message = record.message;
    else if (outcomes[r].signal == 0)
      outcomes[r].message = "left without a word";
  }
  ::munmap(board, sizeof(Board));
  return outcomes;
}

std::vector<Outcome> run_with_longer_waits(
    const ForkedGang& gang, std::chrono::milliseconds& wait,
    const std::function<void(GangContext&)>& rank,
    const std::function<bool(const std::vector<Outcome>&)>& holds) {
  for (;; wait *= 2) {
    auto outcomes = gang.run(rank);
    if (holds(outcomes) || wait > troupe::test::kGuard / 4) return outcomes;
  }
}

Leaving::~Leaving() {
  if (gang_.rank() != to_) gang_.rendezvous().set(fmt::format("left/{}", gang_.rank()), "1");
}

void await_leaving(GangContext& gang) {
  for (int rank = 0; rank < gang.size(); ++rank) {
    if (rank != gang.rank())
      gang.rendezvous().get(fmt::format("left/{}", rank), troupe::test::kGuard);
  }
}

std::string failures(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    const auto& o = outcomes[r];
    if (o.signal == 0 && !o.threw && o.message.empty()) continue;
    text += fmt::format("rank {}: signal {}, {} {}\n", r, o.signal, o.type, o.message);
  }
  return text;
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected: " + what);
}

}  // namespace troupe::testing
