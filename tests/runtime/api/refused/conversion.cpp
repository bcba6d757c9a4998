// refused: an argument does not convert to its parameter
#include <troupe/troupe.hpp>

#include <string>

int length(const std::string& text) { return static_cast<int>(text.size()); }

int main() { return troupe::task<length>(troupe::put(5)).get(); }
