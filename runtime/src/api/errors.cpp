#include <troupe/errors.hpp>

#include <cstdlib>
#include <memory>
#include <utility>

#include <cxxabi.h>

#include <troupe/detail/failure.hpp>

namespace troupe {
namespace {

/// What the exception says to somebody who sees nothing else of it.
std::string describe(const Failure& failure) {
  std::string text = failure.message;
  if (failure.kind == Failure::Kind::Task && !failure.type.empty()) {
    text = text.empty() ? "a value of type " + failure.type + " was thrown"
                        : failure.type + ": " + text;
  }
  if (!failure.where.empty())
    text += (text.empty() ? "in " : " (in ") + failure.where + (text.empty() ? "" : ")");
  return text.empty() ? "failed without a reason" : text;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

std::string current_type() {
  const auto* type = abi::__cxa_current_exception_type();
  return type == nullptr ? std::string() : demangled(type->name());
}

}  // namespace

Error::Error(Failure failure)
    : std::runtime_error(describe(failure)), failure_(std::move(failure)) {}

void raise(const Failure& failure) {
  using Kind = Failure::Kind;
  switch (failure.kind) {
    case Kind::Task:
      throw TaskError(failure);
    case Kind::ProcessDied:
      throw ProcessDied(failure);
    case Kind::ActorDied:
      throw ActorDied(failure);
    case Kind::Cancelled:
      throw Cancelled(failure);
    case Kind::ObjectLost:
      throw ObjectLost(failure);
    case Kind::TimedOut:
      throw TimedOut(failure);
    case Kind::Impossible:
      throw Impossible(failure);
    case Kind::Refused:
      throw Refused(failure);
    case Kind::Disconnected:
      throw Disconnected(failure);
    case Kind::Program:
      throw ProgramError(failure);
    case Kind::GangBroken:
      throw GangBroken(failure);
    case Kind::TooLarge:
      throw TooLarge(failure);
    case Kind::StoreFull:
      throw StoreFull(failure);
    case Kind::NameTaken:
      throw NameTaken(failure);
    case Kind::Unknown:
      break;
  }
  throw Error(failure);
}

namespace detail {

Failure current_failure(std::string where) {
  Failure failure;
  failure.kind = Failure::Kind::Task;
  failure.where = where;
  try {
    throw;
  } catch (const TaskError& error) {
    return error.failure();
  } catch (const GangBroken& error) {
    return error.failure();
  } catch (const Cancelled& error) {
    return error.failure();
  } catch (const StoreFull& error) {  // mostly of the result itself
    failure = error.failure();
    failure.where = where;
  } catch (const Error& error) {
    failure.message = error.what();
    failure.signal = error.failure().signal;
    failure.exit_code = error.failure().exit_code;
    failure.type = current_type();
  } catch (const std::exception& error) {
    failure.message = error.what();
    failure.type = current_type();
  } catch (const std::string& text) {
    failure.message = text;
    failure.type = "std::string";
  } catch (const char* text) {
    failure.message = text == nullptr ? "" : text;
    failure.type = "const char*";
  } catch (...) {
    failure.type = current_type();
  }
  return failure;
}

Failure current_failure_of_user(std::string where) {
  auto failure = current_failure(where);
  if (failure.kind == Failure::Kind::Task) return failure;
  failure.message = failure.where == where ? failure.message : describe(failure);
  failure.kind = Failure::Kind::Task;
  failure.type = current_type();
  failure.where = std::move(where);
  return failure;
}

}  // namespace detail
}  // namespace troupe
