// refused first: this class of the standard library cannot travel, as a thread
#include <troupe/troupe.hpp>

#include <fstream>

std::ofstream open_log(int) { return std::ofstream("log"); }

int main() { return troupe::task<open_log>(1).get().good() ? 0 : 1; }
