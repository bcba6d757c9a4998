// refused: the method is a template argument
#include <troupe/troupe.hpp>

struct Counter {
  int add(int by) { return by; }
};

int main() { return troupe::spawn<Counter>().call(&Counter::add, 3).get(); }
