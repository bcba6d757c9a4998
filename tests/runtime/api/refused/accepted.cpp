// compiles: the control, without which every other file here could fail for a reason of its own
#include <troupe/troupe.hpp>

#include <string>
#include <vector>

struct Fine {
  int number = 0;
  std::vector<std::string> names;
};
int size(const Fine& fine) { return static_cast<int>(fine.names.size()); }

int main() { return troupe::task<size>(Fine{}).get(); }
