// A driver that needs a library of its own, beside the machine's.
#include <iostream>

#include <troupe/troupe.hpp>

int test_only_here();

namespace {

int asks_the_library() { return test_only_here(); }

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    const int answer = troupe::task<asks_the_library>().get();
    std::cout << "answer " << answer << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
    return 1;
  }
}
