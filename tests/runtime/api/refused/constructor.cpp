// refused: the actor has no constructor for these arguments
#include <troupe/troupe.hpp>

struct Counter {
  explicit Counter(int) {}
};

int main() { troupe::spawn<Counter>("ten", 10); }
