// refused: this method belongs to another class than the actor's
#include <troupe/troupe.hpp>

struct Counter {
  int n = 0;
};
struct Other {
  int get() { return 1; }
};

int main() { return troupe::spawn<Counter>().call<&Other::get>().get(); }
