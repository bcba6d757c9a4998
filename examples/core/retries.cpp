// What runs again, and what does not: a task whose process died runs again by itself. One that
// threw does not, since only the program knows whether that can help.
//
//   retries [--address HOST:PORT]
//
// It prints:
//
//   a task whose process died ran again: attempt 2
//   without retries its death is an error: signal 9
//   a task that threw was sent again: attempt 3
#include <csignal>
#include <iostream>
#include <stdexcept>

#include <troupe/troupe.hpp>

namespace {

/// Counts what a task itself cannot: its memory is gone with its process.
class Attempts {
 public:
  int next() { return ++number_; }

 private:
  int number_ = 0;
};

/// Its process is killed in the first attempt, as one that takes too much memory is.
int die_at_first(troupe::Actor<Attempts> attempts) {
  const int attempt = attempts.call<&Attempts::next>().get();
  if (attempt == 1) std::raise(SIGKILL);
  return attempt;
}

int throw_at_first(int attempt) {
  if (attempt < 3) throw std::runtime_error("the service does not answer");
  return attempt;
}

void task_that_runs_again() {
  const auto attempts = troupe::spawn<Attempts>();
  const int attempt = troupe::task<die_at_first>(attempts).get();
  std::cout << "a task whose process died ran again: attempt " << attempt << '\n';
}

/// For a task that must not run twice, as one that sends a letter.
void task_that_runs_once() {
  const auto attempts = troupe::spawn<Attempts>();
  try {
    troupe::with({.retries = 0}).task<die_at_first>(attempts).get();
  } catch (const troupe::ProcessDied& error) {
    std::cout << "without retries its death is an error: signal " << error.signal() << '\n';
  }
}

void task_that_is_sent_again() {
  constexpr int most = 5;
  for (int attempt = 1;; ++attempt) {
    try {
      const int succeeded = troupe::task<throw_at_first>(attempt).get();
      std::cout << "a task that threw was sent again: attempt " << succeeded << '\n';
      return;
    } catch (const troupe::TaskError&) {
      if (attempt == most) throw;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    task_that_runs_again();
    task_that_runs_once();
    task_that_is_sent_again();
  } catch (const std::exception& error) {
    std::cerr << "retries: " << error.what() << '\n';
    return 1;
  }
}
