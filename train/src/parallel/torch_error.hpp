#pragma once

#include <exception>
#include <functional>
#include <string>

namespace troupe::train {

/// The error's text. That of an error of LibTorch is without the stack that LibTorch adds.
std::string text_of(const std::exception& error);

/// Runs `call`. What LibTorch throws becomes a troupe::Error: "<what>: <its text_of()>".
void translated(const std::string& what, const std::function<void()>& call);

}  // namespace troupe::train
