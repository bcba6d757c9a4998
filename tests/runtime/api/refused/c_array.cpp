// refused: a C array cannot travel
#include <troupe/troupe.hpp>

struct Row {
  int cells[4];
};
int first(const Row& row) { return row.cells[0]; }

int main() { return troupe::task<first>(Row{}).get(); }
