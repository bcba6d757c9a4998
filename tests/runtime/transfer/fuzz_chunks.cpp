// A libFuzzer target: arbitrary bytes in answer to a request for an object. Not part of the build.
// To run it, from the root of the tree, after the runtime was built once (it makes
// <build>/runtime/generated/wire/message.capnp.*):
//
//   G=build/dev/runtime/generated
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -mavx2 \
//     -I runtime/include -I runtime/src -I $G tests/runtime/transfer/fuzz_chunks.cpp runtime/src/transfer/chunks.cpp \
//     runtime/src/store/{types,memory/{arena,checksum,checksum_avx2,memory_room}}.cpp runtime/src/transport/{frame,liveness,socket/socket}.cpp \
//     runtime/src/{os/cgroup,api/errors}.cpp $G/wire/message.capnp.c++ -lcapnp -lkj -lfmt -o /tmp/fuzz_chunks
//   mkdir -p /tmp/corpus && /tmp/fuzz_chunks -max_total_time=60 -max_len=8192 /tmp/corpus
//
// The first byte says how much of the object is there already, the others are the stream. It starts
// from one of two chunks, which it writes into the corpus folder: a checksum is not found by
// chance.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "transfer/chunks.hpp"

namespace {

constexpr std::size_t kObjectBytes = 1000;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path corpus((*argv)[*argc - 1]);
  if (!std::filesystem::is_directory(corpus)) return 0;
  std::ofstream file(corpus / "two_chunks", std::ios::binary);
  file << '\0';
  const std::vector<std::byte> half(kObjectBytes / 2, std::byte{7});
  for (const std::size_t offset : {std::size_t{0}, half.size()}) {
    const auto header = troupe::transfer::chunk_header(offset, half);
    file.write(header.data(), header.size())
        .write(reinterpret_cast<const char*>(half.data()), half.size());
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint64_t from = data[0];
  std::array<std::byte, kObjectBytes> object{};
  troupe::transfer::ChunkReader reader(object, from);
  for (std::size_t at = 1; at < size && !reader.is_complete();) {
    const auto space = reader.space();
    // A reader that takes nothing more has to say that it is complete.
    if (space.empty()) std::abort();
    const auto count = std::min(space.size(), size - at);
    std::memcpy(space.data(), data + at, count);
    at += count;
    using Result = troupe::transfer::ChunkReader::Result;
    const auto result = reader.filled(count);
    if (reader.verified() < from || reader.verified() > kObjectBytes) std::abort();
    if (result == Result::Garbage || result == Result::Damaged) {
      if (reader.error().empty()) std::abort();
      break;
    }
  }
  // What was there before is nobody's to write to.
  if (std::any_of(object.begin(), object.begin() + static_cast<std::ptrdiff_t>(from),
                  [](std::byte byte) { return byte != std::byte{0}; }))
    std::abort();
  return 0;
}
