// refused: what can be neither copied nor moved
#include <troupe/troupe.hpp>

#include <memory>
#include <mutex>

struct Guarded {
  int number = 0;
  std::unique_ptr<std::mutex> mutex = {};
};
int number(const Guarded& guarded) { return guarded.number; }

int main() { return troupe::task<number>(Guarded()).get(); }
