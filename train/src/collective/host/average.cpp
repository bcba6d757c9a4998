#include "collective/host/average.hpp"

#include <stdexcept>

namespace troupe::train {
namespace {

template <class F>
auto with_floating_type(DataType type, F f) {
  switch (type) {
    case DataType::Float16:
      return f(Float16{});
    case DataType::BFloat16:
      return f(BFloat16{});
    case DataType::Float32:
      return f(float{});
    case DataType::Float64:
      return f(double{});
    default:
      throw std::invalid_argument("an average of a type that is not floating");
  }
}

}  // namespace

bool are_finite(const void* data, std::size_t count, DataType type) {
  return with_floating_type(type, [&]<class T>(T) {
    using A = typename Compute<T>::type;
    const auto* values = static_cast<const T*>(data);
    NotFinite<A> wrong;
    for (std::size_t i = 0; i < count; ++i) wrong.see(load<T, A>(values[i]));
    return !wrong;
  });
}

void sum_scaled(void* out, std::span<const void* const> in, std::size_t count, DataType type,
                int ranks) {
  with_floating_type(type, [&]<class T>(T) {
    using A = typename Compute<T>::type;
    const A scale = scale_of<A>(ranks);
    for (std::size_t i = 0; i < count; ++i) {
      A sum = 0;
      for (const void* numbers : in) sum += load<T, A>(static_cast<const T*>(numbers)[i]) * scale;
      store<T, A>(sum, static_cast<T*>(out)[i]);
    }
  });
}

void replace_by_scaled(void* means, const void* sums, std::size_t count, DataType type, int ranks) {
  with_floating_type(type, [&]<class T>(T) {
    using A = typename Compute<T>::type;
    for (std::size_t i = 0; i < count; ++i) {
      auto& mean = static_cast<T*>(means)[i];
      if (std::isfinite(load<T, A>(mean))) continue;
      store<T, A>(mean_of_scaled<T>(load<T, A>(static_cast<const T*>(sums)[i]), ranks), mean);
    }
  });
}

}  // namespace troupe::train
