// refused: a view does not own what it shows
#include <troupe/troupe.hpp>

#include <string_view>

struct Line {
  std::string_view text;
};
int length(const Line& line) { return static_cast<int>(line.text.size()); }

int main() { return troupe::task<length>(Line{}).get(); }
