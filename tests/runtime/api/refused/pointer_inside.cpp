// refused: a raw pointer cannot travel
#include <troupe/troupe.hpp>

#include <vector>

struct Node {
  int value = 0;
  Node* next = nullptr;
};
int count(const std::vector<Node>& nodes) { return static_cast<int>(nodes.size()); }

int main() { return troupe::task<count>(std::vector<Node>{}).get(); }
