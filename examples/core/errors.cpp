// What can go wrong with a call, and what a program does about it. get() throws why a ref has no
// value: one of the classes of troupe/errors.hpp, which all derive from troupe::Error.
//
//   errors [--address HOST:PORT]
//
// It prints:
//
//   a task threw std::invalid_argument: "twelve" is no number
//   a slow task is left behind after 50 ms
//   an actor died of signal 9; the next one counts from 0: 1
//   of 4 tasks 3 gave a value
//   no machine has 1000 GPUs
#include <chrono>
#include <csignal>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

int parse(const std::string& text) {
  if (text.find_first_not_of("0123456789") == std::string::npos) return std::stoi(text);
  throw std::invalid_argument('"' + text + "\" is no number");
}

void sleep_long() { std::this_thread::sleep_for(std::chrono::seconds(2)); }

class Counter {
 public:
  int add(int number) { return number_ += number; }
  void die() { std::raise(SIGKILL); }

 private:
  int number_ = 0;
};

void exception_of_a_task() {
  try {
    troupe::task<parse>("twelve").get();
  } catch (const troupe::TaskError& error) {  // what() says in which process, too.
    std::cout << "a task threw " << error.type() << ": " << error.failure().message << '\n';
  }
}

void call_that_takes_too_long() {
  const auto slow = troupe::task<sleep_long>();
  try {
    slow.get(std::chrono::milliseconds(50));
  } catch (const troupe::TimedOut&) {  // The call goes on; slow.get() could still wait for it.
    std::cout << "a slow task is left behind after 50 ms\n";
  }
}

void death_of_an_actor() {
  auto counter = troupe::spawn<Counter>();
  counter.call<&Counter::add>(41).get();
  try {
    counter.call<&Counter::die>().get();
  } catch (const troupe::ActorDied& error) {
    counter = troupe::spawn<Counter>();  // What the first one knew is gone.
    std::cout << "an actor died of signal " << error.signal()
              << "; the next one counts from 0: " << counter.call<&Counter::add>(1).get() << '\n';
  }
}

/// wait() never throws what a call failed with, so that a few failures need not end the whole.
void some_of_many() {
  std::vector<troupe::Ref<int>> numbers;
  for (const char* text : {"1", "2", "three", "4"}) numbers.push_back(troupe::task<parse>(text));
  std::size_t values = 0;
  for (const auto& number : troupe::wait(numbers, numbers.size()).ready)
    if (!number.failure()) ++values;
  std::cout << "of " << numbers.size() << " tasks " << values << " gave a value\n";
}

void request_that_cannot_be_met() {
  try {
    troupe::with({.gpus = 1000}).task<parse>("12").get();
  } catch (const troupe::Impossible&) {  // what() says what each machine lacks.
    std::cout << "no machine has 1000 GPUs\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    exception_of_a_task();
    call_that_takes_too_long();
    death_of_an_actor();
    some_of_many();
    request_that_cannot_be_met();
  } catch (const std::exception& error) {  // For example, nobody listens at the address.
    std::cerr << "errors: " << error.what() << '\n';
    return 1;
  }
}
