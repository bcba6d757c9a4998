#include <troupe/array.hpp>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "fake_core.hpp"
#include "values.hpp"

using namespace troupe;
using namespace troupe::detail;

namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

template <class T>
bool is_same(const Array<T>& array, const std::vector<T>& values) {
  return std::equal(array.begin(), array.end(), values.begin(), values.end());
}

struct Batch {
  std::string name;
  Array<float> inputs;
  Array<std::uint8_t> labels;
  int epoch = 0;
};

/// Grows each time that it is saved, as if another thread wrote to it.
struct Restless {
  mutable std::size_t size = 200'000;
  void save(OutArchive& archive) const {
    const std::string bytes(size++, 'x');
    archive.write(bytes.data(), bytes.size());
  }
  void load(InArchive&) {}
};

}  // namespace

TEST_CASE("a small array travels in its message, and is a copy", "[api][array]") {
  const Array<float> sent(counted(100));
  const auto payload = encode(sent);
  CHECK_FALSE(payload.stored);
  const auto got = decode<Array<float>>(payload);
  CHECK(is_same(got, counted(100)));
  CHECK(is_same(decode<Array<float>>(encode(Array<float>{})), {}));
}

TEST_CASE("a large array is read where it lies, and keeps that alive", "[api][array]") {
  const int before = fake::stored_values();
  Array<float> got;
  {
    const auto payload = encode(Array<float>(counted(100'000)));
    REQUIRE(payload.stored);
    CHECK(payload.bytes.empty());
    const auto block = block_of(payload);
    got = decode<Array<float>>(payload);
    CHECK(static_cast<const void*>(got.data()) ==
          static_cast<const void*>(block.bytes.data() + kArrayAlignment));
    CHECK(decode<Array<float>>(payload).data() == got.data());
  }
  CHECK(fake::stored_values() == before + 1);
  CHECK(is_same(got, counted(100'000)));
  got = {};
  CHECK(fake::stored_values() == before);
}

TEST_CASE("arrays inside a large value are read where they lie too", "[api][array]") {
  const Batch sent{"first", Array<float>(counted(50'001)),
                   Array<std::uint8_t>(std::vector<std::uint8_t>(70'003, 7)), 3};
  const auto payload = encode(sent);
  REQUIRE(payload.stored);
  const auto got = decode<Batch>(payload);
  CHECK(got.name == "first");
  CHECK(got.epoch == 3);
  CHECK(is_same(got.inputs, counted(50'001)));
  CHECK(got.labels[70'002] == 7);
  CHECK(got.inputs.keep() == got.labels.keep());
  CHECK(reinterpret_cast<std::uintptr_t>(got.inputs.data()) % kArrayAlignment == 0);
}

TEST_CASE("large values of any kind are written once, to where they will lie", "[api][array]") {
  const std::vector<std::string> words(3'000, std::string(50, 'w'));
  const auto payload = encode(words);
  REQUIRE(payload.stored);
  CHECK(decode<std::vector<std::string>>(payload) == words);
  const std::string text(300'000, 't');
  CHECK(encode(text).stored);
  CHECK(decode<std::string>(encode(text)) == text);
  const std::string just_below(kStoredBytes - 1, 'b');
  CHECK_FALSE(encode(just_below).stored);
  CHECK(decode<std::string>(encode(just_below)) == just_below);
  CHECK(encode(just_below + "b").stored);
}

TEST_CASE("the refs of a large value come with it, once", "[api][array]") {
  std::vector<std::pair<Ref<int>, std::string>> value;
  for (int i = 0; i < 4; ++i) value.emplace_back(put(i), std::string(40'000, 'r'));
  const auto payload = encode(value);
  REQUIRE(payload.stored);
  CHECK(payload.refs.size() == 4);
  const auto got = decode<decltype(value)>(payload);
  CHECK(got[3].first.get() == 3);
}

TEST_CASE("a value that changes while it is encoded is refused, and nothing is left of it",
          "[api][array]") {
  const int before = fake::stored_values();
  CHECK_THROWS_WITH(encode(Restless{}), Catch::Contains("changed"));
  CHECK(fake::stored_values() == before);
}

TEST_CASE("an array is written in place, small or large", "[api][array]") {
  for (const std::size_t count : {0U, 10U, 100'000U}) {
    NewArray<float> made(count);
    const auto values = counted(count);
    std::copy(values.begin(), values.end(), made.values().begin());
    const float* where = made.values().data();
    const auto ref = put(std::move(made));
    const auto got = ref.get();
    CHECK(is_same(got, values));
    if (count == 100'000U) CHECK(got.data() == where);
  }
  CHECK_THROWS_AS(NewArray<double>(std::size_t{1} << 62), std::length_error);
}

TEST_CASE("bytes that are no array are refused", "[api][array]") {
  auto payload = encode(Array<std::int32_t>(std::vector<std::int32_t>{1, 2, 3}));
  payload.bytes.resize(payload.bytes.size() - 1);
  CHECK_THROWS_AS(decode<Array<std::int32_t>>(payload), DecodeError);
  payload.bytes.assign("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  CHECK_THROWS_AS(decode<Array<std::int32_t>>(payload), DecodeError);
}
