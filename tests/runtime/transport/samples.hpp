#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Shared by the test that damages messages and by the fuzz target.
namespace troupe::transport::test {

/// One frame for every member of wire::Message, all of whose fields are set.
std::vector<std::string> sample_frames();

/// Cuts the bytes into frames and reads every field of every message, as a connection and its
/// handlers would. False where something was refused; whatever the bytes are, it returns.
bool visit_frames(std::string_view bytes);

}  // namespace troupe::transport::test
