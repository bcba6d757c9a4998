// refused first: a raw pointer cannot travel
#include <troupe/troupe.hpp>

int* make() { return new int; }

int main() { return *troupe::task<make>().get(); }
