#include <stdexcept>

#include <troupe/gang_context.hpp>

namespace troupe {

void ThisGang::refuse() {
  throw std::logic_error(
      "troupe::this_gang(): the actor that runs here is no rank of a gang; make it with "
      "troupe::gang<T>({.size = n}), not with spawn, and ask in its methods or its constructor");
}

}  // namespace troupe
