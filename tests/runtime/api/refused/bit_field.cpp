// refused: a bit-field cannot travel
#include <troupe/troupe.hpp>

struct Flags {
  double rate = 1;
  unsigned fast : 3 = 1;
};
double rate(const Flags& flags) { return flags.rate; }

int main() { return static_cast<int>(troupe::task<rate>(Flags{}).get()); }
