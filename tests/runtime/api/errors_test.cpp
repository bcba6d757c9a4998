#include <troupe/errors.hpp>

#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/detail/failure.hpp>

using namespace troupe;
using detail::current_failure;
using Kind = Failure::Kind;

namespace {

struct Custom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Exception>
Failure failure_of(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return current_failure("here");
  }
}

template <class Expected>
bool raises(Kind kind) {
  try {
    raise({.kind = kind, .message = "m"});
  } catch (const Expected& error) {
    return error.failure().kind == kind && std::string(error.what()) == "m";
  } catch (...) {
    return false;
  }
}

}  // namespace

TEST_CASE("every kind of failure is thrown as its class", "[api][errors]") {
  CHECK(raises<TaskError>(Kind::Task));
  CHECK(raises<ProcessDied>(Kind::ProcessDied));
  CHECK(raises<ActorDied>(Kind::ActorDied));
  CHECK(raises<Cancelled>(Kind::Cancelled));
  CHECK(raises<ObjectLost>(Kind::ObjectLost));
  CHECK(raises<TimedOut>(Kind::TimedOut));
  CHECK(raises<Impossible>(Kind::Impossible));
  CHECK(raises<Refused>(Kind::Refused));
  CHECK(raises<Disconnected>(Kind::Disconnected));
  CHECK(raises<ProgramError>(Kind::Program));
  CHECK(raises<GangBroken>(Kind::GangBroken));
  CHECK(raises<TooLarge>(Kind::TooLarge));
  CHECK(raises<StoreFull>(Kind::StoreFull));
  CHECK(raises<Error>(Kind::Unknown));
}

TEST_CASE("an exception becomes a failure with its type, its text and its place", "[api][errors]") {
  const auto failure = failure_of(Custom("text"));
  CHECK(failure.kind == Kind::Task);
  CHECK(failure.type == "(anonymous namespace)::Custom");
  CHECK(failure.message == "text");
  CHECK(failure.where == "here");
  CHECK(failure_of(std::string("thrown")).message == "thrown");
  CHECK(failure_of("literal").message == "literal");
  CHECK(failure_of(5).type == "int");
}

TEST_CASE("a failure that passes through a task keeps what happened first", "[api][errors]") {
  const Failure first{.kind = Kind::Task, .message = "m", .type = "T", .where = "there"};
  CHECK(failure_of(TaskError(first)).where == "there");
  CHECK(failure_of(GangBroken({.kind = Kind::GangBroken})).kind == Kind::GangBroken);

  const auto died =
      failure_of(ActorDied({.kind = Kind::ActorDied, .message = "gone", .signal = 9}));
  CHECK(died.kind == Kind::Task);
  CHECK(died.type == "troupe::ActorDied");
  CHECK(died.signal == 9);
}

TEST_CASE("a function that answers for all that it throws fails with its type, text and place",
          "[api][errors]") {
  for (const auto kind : {Kind::Cancelled, Kind::StoreFull, Kind::GangBroken, Kind::Impossible}) {
    try {
      raise({.kind = kind, .message = "m", .exit_code = -1});
    } catch (...) {
      const auto failure = detail::current_failure_of_user("here");
      CHECK(failure.kind == Kind::Task);
      CHECK(failure.message == "m");
      CHECK_THAT(failure.type, Catch::StartsWith("troupe::"));
      CHECK(failure.where == "here");
      CHECK(failure.exit_code == -1);
    }
  }
  try {
    raise({.kind = Kind::Cancelled, .message = "m", .where = "there"});
  } catch (...) {
    CHECK(detail::current_failure_of_user("here").message == "m (in there)");
  }
  try {
    raise({.kind = Kind::Task, .message = "m", .type = "T", .where = "there"});
  } catch (...) {
    CHECK(detail::current_failure_of_user("here").where == "there");
  }
}

TEST_CASE("what() is a whole sentence", "[api][errors]") {
  CHECK(std::string(
            TaskError({.kind = Kind::Task, .message = "m", .type = "T", .where = "f"}).what()) ==
        "T: m (in f)");
  CHECK(std::string(TaskError({.kind = Kind::Task, .type = "int"}).what()) ==
        "a value of type int was thrown");
  CHECK(std::string(Error(Failure{}).what()) == "failed without a reason");
}
