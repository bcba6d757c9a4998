#include "config/audience.hpp"

namespace troupe::config {
namespace {

Audience of_this_process = Audience::Api;

}  // namespace

Audience audience() { return of_this_process; }
void speak_to(Audience audience) { of_this_process = audience; }

}  // namespace troupe::config
