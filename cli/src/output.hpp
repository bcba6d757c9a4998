#pragma once

#include <cstdio>
#include <string>
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

/// Writes what a command was asked for: the whole of it, else throws as flush_output.
void say_all(std::string_view text);

/// What the command was asked for has been printed to the standard output: throws
/// std::runtime_error where a part of that could not be written.
void flush_output();

/// A manual page: man(1) shows it on a terminal, with its pager, if it is there. Elsewhere, or where man
/// fails, the page is printed as it is.
void show_page(const std::string& page);
/// Gives a file its content: where that fails, as on a full disk, the file has what it had before.
/// What is no regular file (a pipe, /dev/stdout) is written to as it is. Throws std::runtime_error
/// with the path and the cause.
void replace_file(const std::string& path, std::string_view content);

}  // namespace troupe::cli
