// refused first: a std::function cannot travel
#include <troupe/troupe.hpp>

#include <functional>

struct Maker {
  std::function<int()> make() { return {}; }
};

int main() { troupe::spawn<Maker>().call<&Maker::make>().get(); }
