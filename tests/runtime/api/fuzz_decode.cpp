// A libFuzzer target: arbitrary bytes as the value of an argument or a result. Not part of the
// build. To run it, from the root of the tree:
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
//     -I runtime/include -I runtime/src -I tests/runtime/api tests/runtime/api/{fuzz_decode,fake_core}.cpp \
//     runtime/src/api/*.cpp runtime/src/config/name.cpp -lfmt -o /tmp/fuzz_decode
//   mkdir -p /tmp/corpus && /tmp/fuzz_decode -max_total_time=60 -max_len=4096 /tmp/corpus
//
// The first byte says of which type. What is decoded is encoded and decoded again, which must give
// the same bytes.

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <troupe/errors.hpp>

#include "values.hpp"

namespace {

using namespace values;

template <class T>
void decode_as(const std::string& bytes) {
  T value;
  try {
    value = troupe::detail::decode<T>({bytes, {}});
  } catch (const troupe::DecodeError&) {
    return;  // most bytes are no T
  }
  const auto again = troupe::detail::encode(value);
  const auto twice = troupe::detail::encode(troupe::detail::decode<T>(again));
  if (twice.bytes != again.bytes || twice.stored != again.stored) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      decode_as<Labelled>(bytes);
      break;
    case 1:
      decode_as<Tree>(bytes);
      break;
    case 2:
      decode_as<std::vector<Choice>>(bytes);
      break;
    case 3:
      decode_as<Document>(bytes);
      break;
    case 4:
      decode_as<std::vector<std::vector<std::string>>>(bytes);
      break;
    case 5:
      decode_as<std::map<std::string, std::optional<std::vector<bool>>>>(bytes);
      break;
    case 6:
      decode_as<
          std::tuple<std::set<char>, std::deque<std::string>, std::vector<std::shared_ptr<int>>>>(
          bytes);
      break;
    default:
      decode_as<Link>(bytes);
      break;
  }
  return 0;
}
