// refused: wrong number of arguments
#include <troupe/troupe.hpp>

struct Service {
  int add(int a, int b = 7) { return a + b; }
};

int main() { return troupe::spawn<Service>().call<&Service::add>(1).get(); }
