// A driver that does one task and prints its result: the end of what cluster_first_result_s
// measures.
#include <iostream>

#include <troupe/troupe.hpp>

namespace {
int small(int x) { return x; }
}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  std::cout << "result " << troupe::task<small>(42).get() << std::endl;
}
