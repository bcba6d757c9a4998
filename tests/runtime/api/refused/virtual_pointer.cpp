// refused: a pointer to a class with virtual functions cannot travel
#include <troupe/troupe.hpp>

#include <memory>

struct Shape {
  virtual ~Shape() = default;
};
int draw(std::unique_ptr<Shape> shape) { return shape ? 1 : 0; }

int main() { return troupe::task<draw>(std::unique_ptr<Shape>()).get(); }
