#pragma once

#include <fmt/core.h>

#include <troupe/scheduler/strong_id.hpp>

/// Ids in texts. A public header does not know fmt, so that the runtime says the same in its
/// ids/ids.hpp.
template <class Tag, class Number>
struct fmt::formatter<troupe::scheduler::StrongId<Tag, Number>>
    : troupe::scheduler::IdFormatter<troupe::scheduler::StrongId<Tag, Number>,
                                     fmt::formatter<Number>> {};
