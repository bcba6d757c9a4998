#include <troupe/troupe.hpp>

#include <iostream>

int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

struct Counter {
  explicit Counter(int start) : n(start) {}
  int add(int x) { return n += x; }
  int n;
};

int main(int argc, char** argv) {
  auto cluster = troupe::init(argc, argv);  // a private cluster, or --address HOST:PORT

  troupe::Ref<int> f = troupe::task<fib>(30);               // runs in another process, somewhere
  auto counter = troupe::spawn<Counter>(10);                // an actor, in a process of its own
  troupe::Ref<int> total = counter.call<&Counter::add>(f);  // a ref is as good as a value

  std::cout << total.get() << '\n';
}
