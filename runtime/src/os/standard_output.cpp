#include "os/standard_output.hpp"

#include <cstdio>
#include <iostream>

#include <stdio_ext.h>

namespace troupe::os {
namespace {

/// Its exceptions, if the program has asked for any, are for who prints.
void flush(std::ostream& stream) try {
  if ((stream.flags() & std::ios_base::unitbuf) == 0) stream.flush();
} catch (...) {
}

}  // namespace

void flush_standard_output() {
  if (!std::ios_base::sync_with_stdio(true)) {  // with libstdc++ this call only asks
    flush(std::cout);
    flush(std::clog);
  }
  if (__fpending(stdout) > 0) std::fflush(stdout);
  if (__fpending(stderr) > 0) std::fflush(stderr);
}

}  // namespace troupe::os
