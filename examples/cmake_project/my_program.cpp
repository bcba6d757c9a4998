// A project of its own that uses an installed Troupe: see CMakeLists.txt beside it. Prints:
//
//   0 1 4 9 16
#include <troupe/troupe.hpp>

#include <iostream>
#include <vector>

int square(int n) { return n * n; }

int main(int argc, char** argv) {
  auto cluster = troupe::init(argc, argv);

  std::vector<troupe::Ref<int>> squares;
  for (int n = 0; n < 5; ++n) squares.push_back(troupe::task<square>(n));
  for (int n : troupe::get(squares)) std::cout << n << ' ';
  std::cout << '\n';
}
