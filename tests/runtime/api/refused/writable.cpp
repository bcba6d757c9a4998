// refused: a parameter is a non-const reference
#include <troupe/troupe.hpp>

void fill(int& number) { number = 1; }

int main() {
  int number = 0;
  troupe::task<fill>(number).get();
  return number;
}
