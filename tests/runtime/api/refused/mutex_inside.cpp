// refused: what can be neither copied nor moved
#include <troupe/troupe.hpp>

#include <mutex>

struct Guarded {
  int number = 0;
  std::mutex mutex = {};
};
int number(const Guarded& guarded) { return guarded.number; }

int main() { return troupe::task<number>(Guarded()).get(); }
