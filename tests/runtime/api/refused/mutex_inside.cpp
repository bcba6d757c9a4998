// refused: this type cannot travel
#include <memory>
#include <mutex>

#include <troupe/troupe.hpp>

struct Guarded {
  int number = 0;
  std::unique_ptr<std::mutex> mutex = {};
};
int number(const Guarded& guarded) { return guarded.number; }

int main() { return troupe::task<number>(Guarded()).get(); }
