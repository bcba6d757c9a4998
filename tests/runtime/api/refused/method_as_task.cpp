// refused first: a method needs its object
#include <troupe/troupe.hpp>

struct Counter {
  int get() { return 1; }
};

int main() { return troupe::task<&Counter::get>().get(); }
