#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace troupe {

/// Why a call, a request or a connection failed. A value that copies, serializes and travels.
struct Failure {
  enum class Kind : std::uint16_t {
    Unknown,
    Task,         ///< user code threw: `type` and `message` are its exception's
    ProcessDied,  ///< the process that ran a task ended: `signal` or `exit_code` says how
    ActorDied,    ///< the process of an actor ended
    Cancelled,
    ObjectLost,  ///< the owner of a ref is gone, and the value with it
    TimedOut,
    Impossible,    ///< no node of the cluster can ever meet the request
    Refused,       ///< the cluster said no: wrong token, name taken, unknown name, ...
    Disconnected,  ///< the cluster cannot be reached (any more)
    Program,       ///< the node cannot run the program
    GangBroken,    ///< another rank of the gang died
    TooLarge,      ///< a value or a message above its limit
    StoreFull,     ///< the object store has no room for a value, and could make none in time
    NameTaken,     ///< another actor has the name
  };

  Kind kind = Kind::Unknown;
  std::string message = {};
  std::string type = {};   ///< of the user's exception, demangled; else empty
  std::string where = {};  ///< function, process and node in which it happened; may be empty
  int signal = 0;          ///< the signal that ended the process; 0: none
  /// The exit code of the process if no signal ended it; -1: the process was lost with its node.
  int exit_code = 0;
};

/// The base of all exceptions for failures that can happen in a cluster.
class Error : public std::runtime_error {
 public:
  explicit Error(Failure failure);
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

/// User code threw in the process that ran the call.
struct TaskError : Error {
  using Error::Error;
  const std::string& type() const { return failure().type; }  ///< e.g. "std::out_of_range"
  /// E.g. "Counter::add, process 7 (pid 4711) on node 2".
  const std::string& where() const { return failure().where; }
};

/// The process that should have answered has ended.
struct ProcessDied : Error {
  using Error::Error;
  int signal() const { return failure().signal; }        ///< 0 if it exited
  int exit_code() const { return failure().exit_code; }  ///< meaningful where signal() is 0
};
struct ActorDied : ProcessDied {
  using ProcessDied::ProcessDied;
};
/// Another rank of this rank's gang has died, or the gang was ended.
struct GangBroken : Error {
  using Error::Error;
};

struct Cancelled : Error {
  using Error::Error;
};
struct ObjectLost : Error {
  using Error::Error;
};
struct TimedOut : Error {
  using Error::Error;
};
/// The request can never be met by the nodes of this cluster.
struct Impossible : Error {
  using Error::Error;
};
struct Refused : Error {
  using Error::Error;
};
/// Another actor has the name that was asked for.
struct NameTaken : Refused {
  using Refused::Refused;
};
struct Disconnected : Error {
  using Error::Error;
};
struct ProgramError : Error {
  using Error::Error;
};
struct TooLarge : Error {
  using Error::Error;
};
/// The object store of a node has no room: what() says how much is held by what, and which limit
/// was reached.
struct StoreFull : Error {
  using Error::Error;
};

/// Throws the class above that stands for `failure.kind`.
[[noreturn]] void raise(const Failure& failure);

}  // namespace troupe
