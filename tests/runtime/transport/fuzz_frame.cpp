// A libFuzzer target: arbitrary bytes as a peer's stream. Not part of the build. To run it, from
// the root of the tree, after the runtime was built once (it makes
// <build>/runtime/generated/wire/message.capnp.*):
//
//   G=build/dev/runtime/generated
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
//     -I runtime/include -I runtime/src -I tests/runtime -I $G \
//     tests/runtime/transport/{fuzz_frame,samples}.cpp runtime/src/transport/{frame,outbox}.cpp \
//     $G/wire/message.capnp.c++ -lcapnp -lkj -lfmt -o /tmp/fuzz_frame
//   mkdir -p /tmp/corpus && /tmp/fuzz_frame -max_total_time=60 -max_len=8192 /tmp/corpus
//
// It starts from one valid frame of every kind, of which it writes the missing ones into the corpus
// folder.

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "transport/samples.hpp"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path corpus((*argv)[*argc - 1]);
  if (!std::filesystem::is_directory(corpus)) return 0;
  int kind = 0;
  for (const auto& frame : troupe::transport::test::sample_frames()) {
    std::ofstream(corpus / ("sample-" + std::to_string(kind++)), std::ios::binary) << frame;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::transport::test::visit_frames({reinterpret_cast<const char*>(data), size});
  return 0;
}
