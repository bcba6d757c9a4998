#pragma once

#include <string>

namespace troupe::launch {

/// The functions below are for files that an option of `troupe run` names. They throw Refused with
/// `option` in the error.

/// Gives the file all of `content`. A file that cannot be written keeps the content that it had
/// before.
void write_file(const std::string& file, const std::string& content, const char* option);
/// -> the content of the file, which must be a regular file of kMostFileBytes at most.
std::string read_file(const std::string& file, const char* option);
/// Removes the file of an earlier run, so that nobody takes that file for one of this run. A file
/// behind a link is emptied in its place. A pipe, a device or a folder is left as it is, and an
/// empty name stands for no file.
void remove_old(const std::string& file, const char* option);
/// Checks that the file could be written, before anything runs whose result would be lost. An empty
/// name stands for no file.
void require_writable(const std::string& file, const char* option);

}  // namespace troupe::launch
