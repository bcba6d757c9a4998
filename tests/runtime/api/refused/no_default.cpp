// refused: a value that travels needs a default constructor; with constructors
#include <troupe/troupe.hpp>

class Handle {
 public:
  explicit Handle(int n) : number(n) {}
  int number;
};
int number(const Handle& handle) { return handle.number; }

int main() { return troupe::task<number>(Handle(1)).get(); }
