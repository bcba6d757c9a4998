#include "parallel/in_place.hpp"

namespace troupe::train {

bool is_in_place(const at::Tensor& tensor, const at::Tensor& place) {
  return tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_conj() &&
         !tensor.is_neg() && tensor.scalar_type() == place.scalar_type() &&
         tensor.storage().is_alias_of(place.storage()) &&
         tensor.storage_offset() == place.storage_offset() && tensor.sizes() == place.sizes() &&
         tensor.strides() == place.strides();
}

}  // namespace troupe::train
