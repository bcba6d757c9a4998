// refused first: a trainable is a function
#include <troupe/detail/trainable/trainable_worker.hpp>

double train(int epochs) { return epochs; }

int main() { troupe::detail::trainable_config<train> config{}; }
