#include <ATen/autocast_mode.h>
#include <troupe/train/context.hpp>

#include "precision/scalar_type.hpp"

namespace troupe::train {

void detail::forget_converted() { at::autocast::clear_cache(); }

struct Context::Autocast::Before {
  c10::DeviceType device;
  bool is_enabled;
  at::ScalarType type;
  bool caches;
};

Context::Autocast::Autocast(const Context& context) {
  const auto type = context.options().mixed_precision.type;
  if (type == MixedPrecision::Type::Float32) return;
  const auto device = context.device().type();
  before_.reset(new Before{device, at::autocast::is_autocast_enabled(device),
                           at::autocast::get_autocast_dtype(device),
                           at::autocast::is_autocast_cache_enabled()});
  at::autocast::set_autocast_dtype(device, scalar_type_of(type));
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::increment_nesting();
  // It would keep each parameter that was converted until the guard ends, also where no backward
  // needs it.
  if (context.options().zero.stage == 3) at::autocast::set_autocast_cache_enabled(false);
}

Context::Autocast::~Autocast() {
  if (!before_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(before_->device, before_->is_enabled);
  at::autocast::set_autocast_dtype(before_->device, before_->type);
  at::autocast::set_autocast_cache_enabled(before_->caches);
}

}  // namespace troupe::train
