// A libFuzzer target: arbitrary bytes in place of what a process has run. Not part of the build.
// To run it, from the root of the tree, after the runtime was built once (it makes
// <build>/runtime/generated/wire/message.capnp.*):
//
//   G=build/dev/runtime/generated
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
//     -I runtime/include -I runtime/src -I scheduler/include -I $G tests/runtime/tasks/fuzz_call_trace.cpp \
//     runtime/src/calls/timeline/call_trace.cpp runtime/src/os/ticks.cpp $G/wire/message.capnp.c++ -lcapnp -lkj -o /tmp/fuzz_call_trace
//   mkdir -p /tmp/corpus && /tmp/fuzz_call_trace -max_total_time=60 -max_len=4096 /tmp/corpus
//
// It starts from one trace of two spans, which it writes into the corpus folder.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "calls/timeline/call_trace.hpp"

using namespace troupe::runtime;

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path corpus((*argv)[*argc - 1]);
  if (!std::filesystem::is_directory(corpus)) return 0;
  CallTrace trace;
  trace.node_name = "w1";
  trace.names = {"f", "g"};
  trace.spans = {{.begin = 10, .end = 20}, {.begin = 30, .called = 25, .name = 1}};
  std::ofstream(corpus / "two_spans", std::ios::binary) << encode(trace);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = decode_call_trace(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!trace) return 0;
  for (const auto& span : trace->spans) {
    if (span.name >= trace->names.size()) std::abort();
  }
  return 0;
}
