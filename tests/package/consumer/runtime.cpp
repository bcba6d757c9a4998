#include <iostream>

#include <troupe/troupe.hpp>

int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv, {.cpus = 1});
  if (troupe::task<fib>(10).get() == 55) std::cout << "consumer: it works\n";
}
