#include "tasks/cpu_lending.hpp"

#include <random>
#include <utility>

#include <catch2/catch.hpp>

#include "rounds.hpp"

namespace troupe::runtime {
namespace {

using Then = CpuLending::Then;

/// Threads that use the CPU of a process, and the head, which answers when it likes.
class Threads {
 public:
  void wait() {
    ++waiting_;
    perform(lending_.begin_wait());
  }
  /// The head has heard nothing, and what was lent is gone.
  void return_lease() { is_lent_ = false; }
  void end_wait() {
    --waiting_;
    const auto then = lending_.end_wait();
    then == Then::GoOn ? ++gone_on_ : ++to_resume_;
    perform(then);
  }
  void answer() {
    REQUIRE(is_asked_);
    is_asked_ = false;
    gone_on_ += std::exchange(to_resume_, 0);
    perform(lending_.resumed());
  }

  bool is_lent() const { return is_lent_; }
  bool is_asked() const { return is_asked_; }
  int waiting() const { return waiting_; }
  int gone_on() const { return gone_on_; }
  int to_resume() const { return to_resume_; }

 private:
  /// Requires what number 2 of the header promises the head.
  void perform(Then then) {
    if (then == Then::SayBlocked) {
      REQUIRE_FALSE(is_asked_);
      is_lent_ = true;
    } else if (then == Then::SayUnblocked) {
      REQUIRE(is_lent_);
      REQUIRE_FALSE(is_asked_);
      is_lent_ = false;
      is_asked_ = true;
    }
  }

  CpuLending lending_;
  bool is_lent_ = false;   // as the head has heard
  bool is_asked_ = false;  // the head has an answer to give
  int waiting_ = 0, gone_on_ = 0, to_resume_ = 0;
};

}  // namespace

TEST_CASE("a thread that waits lends the CPU, and goes on once the head has answered",
          "[runtime][tasks][cpus]") {
  Threads threads;
  threads.wait();
  CHECK(threads.is_lent());
  threads.end_wait();
  CHECK_FALSE(threads.is_lent());
  CHECK(threads.gone_on() == 0);
  threads.answer();
  CHECK(threads.gone_on() == 1);
  CHECK_FALSE(threads.is_lent());
}

TEST_CASE("the CPU is lent as long as one of several threads waits", "[runtime][tasks][cpus]") {
  Threads threads;
  threads.wait();
  threads.wait();
  threads.end_wait();
  CHECK(threads.is_lent());
  CHECK(threads.gone_on() == 1);
  threads.end_wait();
  CHECK_FALSE(threads.is_lent());
  // Before the answer another thread waits: the head hears of it behind its answer.
  threads.wait();
  CHECK_FALSE(threads.is_lent());
  threads.answer();
  CHECK(threads.gone_on() == 2);
  CHECK(threads.is_lent());
}

TEST_CASE("a thread that waits no longer than the head needs for an answer goes on with it",
          "[runtime][tasks][cpus]") {
  Threads threads;
  threads.wait();
  threads.end_wait();
  threads.wait();
  threads.end_wait();
  CHECK(threads.gone_on() == 0);
  threads.answer();
  CHECK(threads.gone_on() == 2);
  CHECK_FALSE(threads.is_asked());
}

TEST_CASE("a wait lends the CPU of a call also where an earlier call has left a thread that waits",
          "[runtime][tasks][cpus]") {
  Threads threads;
  threads.wait();
  threads.return_lease();
  threads.wait();
  CHECK(threads.is_lent());
}

TEST_CASE("whatever threads wait in whatever order, the CPU is lent exactly while one does",
          "[runtime][tasks][cpus]") {
  const auto first = test::first_seed();
  for (unsigned seed = first; seed < first + test::rounds(200); ++seed) {
    INFO("TROUPE_TEST_SEED=" << seed);
    std::minstd_rand random(seed);
    Threads threads;
    for (int event = 0; event < 200; ++event) {
      const auto what = std::uniform_int_distribution(0, 2)(random);
      if (what == 0 && threads.waiting() < 4) threads.wait();
      if (what == 1 && threads.waiting() > 0) threads.end_wait();
      if (what == 2 && threads.is_asked()) threads.answer();
      REQUIRE(threads.is_lent() == (threads.waiting() > 0 && !threads.is_asked()));
      REQUIRE((threads.to_resume() == 0 || threads.is_asked()));
    }
  }
}

}  // namespace troupe::runtime
