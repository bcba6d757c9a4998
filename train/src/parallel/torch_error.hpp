#pragma once

#include <functional>
#include <string>

namespace troupe::train {

/// Runs `call`. What LibTorch throws becomes a troupe::Error: "<what>: <LibTorch's words, without
/// its stack>".
void translated(const std::string& what, const std::function<void()>& call);

}  // namespace troupe::train
