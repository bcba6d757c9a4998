#pragma once

#include <string>

namespace troupe::launch {

/// Files that an option of `troupe run` names. `option` stands in the error, which is Refused.
/// A file that is written has all of `content`; one that cannot be has what it had before.
void write_file(const std::string& file, const std::string& content, const char* option);
/// A regular file of kMostFileBytes at most.
std::string read_file(const std::string& file, const char* option);
/// Removes what an earlier run has written there, so that nobody takes it for this one's. A file
/// behind a link is emptied in its place. An empty name is no file.
void remove_old(const std::string& file, const char* option);
/// For before anything runs whose result would be lost. An empty name is no file.
void require_writable(const std::string& file, const char* option);

}  // namespace troupe::launch
