// Random events against one incarnation of an actor. Each sequence is told by its seed.
#include "actors/incarnation.hpp"

#include <map>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

using namespace troupe;
using namespace troupe::runtime;

namespace {

/// Feeds an incarnation, and knows what it must have done.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  void random_event() {
    const auto dice = pick(20);
    if (dice < 8) return add();
    if (dice < 14) return resolve(any_call());
    if (dice < 16) return fail(any_call());
    if (dice < 18) return cancel(any_call());
    if (dice < 19) return apply(actor_.on_placed());
    if (pick(20) == 0) die();
  }
  /// Everything that is still waited for comes.
  void settle() {
    apply(actor_.on_placed());
    for (auto& [number, call] : calls_) resolve(number);
    for (const auto& [number, call] : calls_) {
      CAPTURE(number);
      REQUIRE(call.sent + call.ended == 1);
    }
    CHECK(actor_.queued() == 0);
  }

 private:
  struct Call {
    bool resolved = false;
    int sent = 0;
    int ended = 0;
  };
  unsigned pick(unsigned below) {
    return std::uniform_int_distribution<unsigned>{0, below - 1}(random_);
  }
  Incarnation::Number any_call() { return 1 + pick(static_cast<unsigned>(last_) + 2); }

  void add() {
    calls_[++last_];
    apply(actor_.on_call(last_));
  }
  void resolve(Incarnation::Number number) {
    const auto call = calls_.find(number);
    if (call == calls_.end() || call->second.resolved) return;
    call->second.resolved = true;
    apply(actor_.on_resolved(number));
  }
  void fail(Incarnation::Number number) {
    const auto call = calls_.find(number);
    if (call == calls_.end() || call->second.resolved) return;
    call->second.resolved = true;
    apply(actor_.on_argument_failed(number, {.message = "an argument"},
                                    number == 1 && pick(10) == 0));
  }
  void cancel(Incarnation::Number number) {
    apply(actor_.on_cancelled(number, {.message = "cancelled"}));
  }
  void die() { apply(actor_.on_death({.message = "killed"})); }

  void apply(const Incarnation::Effects& effects) {
    for (const auto& effect : effects) {
      if (const auto* send = std::get_if<Incarnation::Send>(&effect)) {
        REQUIRE(actor_.is_placed());
        REQUIRE_FALSE(actor_.death());
        REQUIRE(calls_.at(send->call).resolved);
        REQUIRE(send->call > last_sent_);
        last_sent_ = send->call;
        ++calls_.at(send->call).sent;
      } else {
        ++calls_.at(std::get<Incarnation::End>(effect).call).ended;
      }
    }
    check_queue();
  }
  void check_queue() {
    std::size_t queued = 0;
    const Call* first = nullptr;
    for (const auto& [number, call] : calls_) {
      REQUIRE(call.sent + call.ended <= 1);
      if (call.sent + call.ended > 0) continue;
      if (!first) first = &call;
      ++queued;
    }
    // The call of the event under way is counted by both, or its end is among the effects.
    REQUIRE(actor_.queued() == queued);
    if (actor_.death()) REQUIRE(queued == 0);
    if (actor_.is_placed() && first) REQUIRE_FALSE(first->resolved);
  }

  std::mt19937 random_;
  Incarnation actor_;
  std::map<Incarnation::Number, Call> calls_;
  Incarnation::Number last_ = 0;
  Incarnation::Number last_sent_ = 0;
};

}  // namespace

TEST_CASE("random events of an actor: each call is sent in order or ended, once",
          "[actors][incarnation][property]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int i = 0; i < 400; ++i) world.random_event();
    world.settle();
  }
}
