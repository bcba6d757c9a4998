// refused first: this function takes no actor
#include <troupe/troupe.hpp>

struct Counter {
  int n = 0;
};

int main() {
  return troupe::spawn<Counter>().call<[](int x) { return x; }>(1).get();
}
