// refused: a raw pointer cannot travel
#include <troupe/troupe.hpp>

int value(int* pointer) { return *pointer; }

int main() {
  int number = 1;
  return troupe::task<value>(&number).get();
}
