// refused: a std::function cannot travel
#include <functional>

#include <troupe/troupe.hpp>

struct Maker {
  std::function<int()> make() { return {}; }
};

int main() { troupe::spawn<Maker>().call<&Maker::make>().get(); }
