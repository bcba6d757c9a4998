// refused: a std::function cannot travel
#include <troupe/troupe.hpp>

#include <functional>

int call(const std::function<int(int)>& function) { return function(1); }

int main() {
  return troupe::task<call>([](int x) { return x; }).get();
}
