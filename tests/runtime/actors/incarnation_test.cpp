#include "actors/incarnation.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace troupe;
using namespace troupe::runtime;

namespace {

Failure failed(const std::string& why) { return {.message = why}; }

/// "send 1, end 2 gone"
std::string text(const Incarnation::Effects& effects) {
  std::string out;
  for (const auto& effect : effects) {
    if (!out.empty()) out += ", ";
    if (const auto* send = std::get_if<Incarnation::Send>(&effect))
      out += "send " + std::to_string(send->call);
    if (const auto* end = std::get_if<Incarnation::End>(&effect))
      out += "end " + std::to_string(end->call) + " " + end->why.message;
  }
  return out;
}

}  // namespace

TEST_CASE("calls wait for the actor's place, and for what stands before them",
          "[actors][incarnation]") {
  Incarnation actor;
  CHECK(text(actor.on_call(1)).empty());
  CHECK(text(actor.on_call(2)).empty());
  CHECK(text(actor.on_resolved(2)).empty());
  CHECK(text(actor.on_placed()).empty());  // the first one's arguments are not here
  CHECK(text(actor.on_resolved(1)) == "send 1, send 2");
  CHECK(text(actor.on_call(3)).empty());
  CHECK(text(actor.on_resolved(3)) == "send 3");
}

TEST_CASE("a call that is cancelled, or whose argument failed, holds nothing up",
          "[actors][incarnation]") {
  Incarnation actor;
  for (Incarnation::Number call = 1; call <= 4; ++call) CHECK(text(actor.on_call(call)).empty());
  CHECK(text(actor.on_placed()).empty());
  for (Incarnation::Number call = 2; call <= 4; call += 2)
    CHECK(text(actor.on_resolved(call)).empty());
  CHECK(text(actor.on_argument_failed(3, failed("lost"), false)) == "end 3 lost");
  CHECK(text(actor.on_cancelled(1, failed("cancelled"))) == "end 1 cancelled, send 2, send 4");
  CHECK(text(actor.on_cancelled(2, failed("cancelled"))).empty());  // it has left
  CHECK(actor.queued() == 0);
}

TEST_CASE("death ends what is queued and what comes later, and the first death counts",
          "[actors][incarnation]") {
  Incarnation actor;
  CHECK(text(actor.on_call(1)).empty());
  CHECK(text(actor.on_call(2)).empty());
  CHECK(text(actor.on_death(failed("killed"))) == "end 1 killed, end 2 killed");
  CHECK(text(actor.on_death(failed("again"))).empty());
  CHECK(text(actor.on_placed()).empty());
  CHECK(text(actor.on_call(3)) == "end 3 killed");
  CHECK(text(actor.on_resolved(3)).empty());
  CHECK(actor.death()->message == "killed");
}

TEST_CASE("without its constructor's arguments an actor never lives", "[actors][incarnation]") {
  Incarnation actor;
  CHECK(text(actor.on_call(1)).empty());
  CHECK(text(actor.on_call(2)).empty());
  CHECK(text(actor.on_argument_failed(1, failed("lost"), true)) == "end 1 lost, end 2 lost");
  CHECK(actor.death());
}
