// refused: this type cannot travel
#include <troupe/troupe.hpp>

class Secret {
 public:
  int get() const { return number_; }

 private:
  int number_ = 0;
};
int get(const Secret& secret) { return secret.get(); }

int main() { return troupe::task<get>(Secret()).get(); }
