#pragma once

#include <fstream>
#include <string>

#include <sys/types.h>
#include <catch2/catch.hpp>

/// A process that leaves the session of the program which started it: nobody finds it by the
/// program's process group.
namespace troupe::test {

/// For a shell: starts such a process, which writes its id into the file `$left`.
inline constexpr const char* kLeave =
    "setsid sh -c 'echo $$ > $0.new; mv $0.new $0; exec sleep 300' $left & "
    "until [ -s $left ]; do sleep 0.02; done; ";

/// For a shell: waits, for a minute at most, until the process of the file `$left` is gone.
inline constexpr const char* kUntilGone =
    "i=0; while kill -0 $(cat $left) 2> /dev/null; do "
    "i=$((i+1)); [ $i -lt 1200 ] || exit 4; sleep 0.05; done; ";

inline pid_t number_in(const std::string& file) {
  pid_t number = 0;
  std::ifstream(file) >> number;
  INFO(file);
  REQUIRE(number > 0);
  return number;
}

}  // namespace troupe::test
