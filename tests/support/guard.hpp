#pragma once

#include <chrono>

namespace troupe::test {

/// How long a test waits for what must come: a test that passes never waits so long, however slow
/// the machine is. A shorter wait stands only in a test of something that must not come.
constexpr auto kGuard = std::chrono::seconds(60);

}  // namespace troupe::test
