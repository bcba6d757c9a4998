// refused second: an anonymous union cannot travel
#include <troupe/troupe.hpp>

struct Number {
  bool whole = true;
  union {
    long count = 1;
    double share;
  };
};
double rate(const Number& number) { return number.share; }

int main() { return static_cast<int>(troupe::task<rate>(Number{}).get()); }
