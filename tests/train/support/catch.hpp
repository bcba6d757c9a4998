#pragma once

// LibTorch's logging has a CHECK of its own. Included first, so that it cannot come back, and then
// forgotten.
#include <c10/util/Logging.h>
#undef CHECK

#include <catch2/catch.hpp>
