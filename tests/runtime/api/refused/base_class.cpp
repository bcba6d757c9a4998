// refused: an aggregate with a base class needs a cereal serialize
#include <troupe/troupe.hpp>

struct Base {
  int id = 0;
};
struct Derived : Base {
  int more = 0;
};
int sum(const Derived& value) { return value.id + value.more; }

int main() { return troupe::task<sum>(Derived{}).get(); }
