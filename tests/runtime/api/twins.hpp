#pragma once

#include <troupe/detail/core.hpp>

/// Two files, each with a function of the same name in an anonymous namespace.
const troupe::detail::FunctionKey& first_twin();
const troupe::detail::FunctionKey& second_twin();
int call_first_twin(int x);
int call_second_twin(int x);
