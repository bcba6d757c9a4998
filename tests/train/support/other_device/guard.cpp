// The other device without events.
#include "support/other_device/guard.hpp"

namespace troupe::testing {
namespace {

C10_REGISTER_GUARD_IMPL(HPU, OtherGuard)

}  // namespace
}  // namespace troupe::testing
