// refused: an argument does not convert to its parameter
#include <troupe/troupe.hpp>

#include <memory>

int open(std::unique_ptr<int> pointer) { return *pointer; }

int main() {
  auto owned = std::make_unique<int>(1);
  return troupe::task<open>(owned).get();
}
