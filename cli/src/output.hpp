#pragma once

#include <cstdio>
#include <string_view>

/// How a command writes to its standard output and error.
namespace troupe::cli {

/// Opens /dev/null in place of each standard descriptor that is closed, so that no socket takes its
/// number and gets what is printed. It is open for reading only: who must print is told that
/// nothing arrives. To be called before anything is opened.
void keep_standard_descriptors();

/// Writes `text` at once. Where that fails (the terminal is closed, the disk is full, nobody reads
/// the pipe), the text is lost and the command goes on.
void say(std::FILE* to, std::string_view text);

/// What the command was asked for has been printed to the standard output: throws
/// std::runtime_error where a part of that could not be written.
void flush_output();

}  // namespace troupe::cli
