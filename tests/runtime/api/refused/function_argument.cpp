// refused: the function is a template argument: troupe::task<f>(arguments...)
#include <troupe/troupe.hpp>

int main() {
  const int factor = 2;
  const int product = troupe::task([&](int x) { return factor * x; }, 21).get();
  return product;
}
