#include <troupe/detail/codec.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "values.hpp"

using namespace troupe::detail;
using namespace values;
using troupe::DecodeError;

namespace {

/// What one decode may allocate in all, beyond what a message may take by its size: strings and
/// messages of errors.
constexpr std::size_t kSlack = 4096;

std::atomic<std::size_t> allocated = 0;

std::string number(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
void refuses(const std::string& bytes, const std::string& why) {
  CHECK_THROWS_AS(decode<T>(Payload{bytes, {}}), DecodeError);
  CHECK_THROWS_WITH(decode<T>(Payload{bytes, {}}), Catch::Contains(why));
}

/// Decodes bytes that anyone may have sent: a T or a DecodeError, within the budget.
template <class T>
void withstands(const std::string& bytes) {
  const Payload payload{bytes, {}};
  const std::size_t before = allocated;
  try {
    decode<T>(payload);
  } catch (const DecodeError&) {
    // Most bytes are no T.
  }
  const auto budget = kDecodeBase + kDecodePerByte * bytes.size();
  // Twice: a vector that grows holds the old block and the new one.
  CHECK(allocated - before <= 2 * budget + kSlack);
}

template <class T>
void withstands_mutations(const T& value, std::mt19937_64& random) {
  const auto good = encode(value).bytes;
  for (int round = 0; round < 400; ++round) {
    auto bytes = good;
    const auto flips = 1 + random() % 4;
    for (std::uint64_t i = 0; i < flips && !bytes.empty(); ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    if (random() % 8 == 0) bytes += number(random());
    withstands<T>(bytes);
  }
  for (int round = 0; round < 100; ++round) {
    std::string bytes(random() % 200, '\0');
    const bool small = random() % 2 == 0;  // small numbers are lengths and indices more often
    for (auto& byte : bytes) byte = static_cast<char>(small ? random() % 4 : random());
    withstands<T>(bytes);
  }
}

}  // namespace

// Counts what is allocated in this program's tests; never less than what is in use.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocated += size;
  if (auto* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocated += size;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("bytes that are cut short, or go on, are refused with the name of the type",
          "[api][decode]") {
  refuses<int>("abc", "no int");
  refuses<Labelled>("abc", "values::Labelled");
  refuses<std::optional<std::string>>(std::string(1, '\0') + number(3) + "ab",
                                      "length beyond its end");
  refuses<std::vector<char>>(number(1) + "ab", "something follows");
  refuses<std::vector<double>>(number(2) + number(0), "length beyond its end");
}

TEST_CASE("a bool, an enumerator or an alternative that does not exist is refused",
          "[api][decode]") {
  refuses<bool>("\x02", "bool");
  refuses<std::array<bool, 2>>(std::string("\1\3", 2), "bool");
  refuses<std::vector<bool>>(number(1) + "\x02", "bool");
  refuses<std::optional<int>>("\x02", "bool");
  refuses<Color>("\x03", "enumerator");
  refuses<std::variant<int, char>>(std::string("\2\0\0\0a", 5), "index");
  refuses<std::variant<int, char>>(std::string("\377\377\377\377a", 5), "variant");
}

TEST_CASE("a length that the bytes cannot hold allocates nothing", "[api][decode]") {
  const auto huge = number(std::uint64_t{1} << 60);
  for (const auto& count : {huge, number(~std::uint64_t{0}), number(1 << 20)}) {
    withstands<std::u16string>(count);
    withstands<std::vector<double>>(count + "x");
    withstands<std::vector<Labelled>>(count);
    withstands<std::deque<std::string>>(count);
    withstands<std::unordered_set<int>>(count);
    withstands<std::map<int, int>>(count);
    refuses<std::vector<std::string>>(count, "length beyond its end");
  }
}

TEST_CASE("small elements that decode to large ones are bounded", "[api][decode]") {
  using Large = std::optional<std::array<double, 1024>>;
  // 64 KiB that would become 512 MiB.
  const std::string bytes = number(1 << 16) + std::string(1 << 16, '\1');
  refuses<std::vector<Large>>(bytes, "64 times its size");
  withstands<std::vector<Large>>(bytes);
  withstands<std::list<Large>>(bytes);
}

TEST_CASE("nesting is bounded before the stack is", "[api][decode]") {
  std::string tree;
  for (int i = 0; i < 100'000; ++i) tree += std::string(4, '\0') + number(1);
  refuses<Tree>(tree, "nests deeper");
  std::string list;
  for (int i = 0; i < 100'000; ++i) list += std::string(4, '\0') + "\1";
  refuses<Link>(list, "nests deeper");
}

TEST_CASE("a shared pointer that was not there, or was to another type, is refused",
          "[api][decode]") {
  using Two = std::pair<std::shared_ptr<int>, std::shared_ptr<std::string>>;
  refuses<std::shared_ptr<int>>(std::string("\7\0\0\0", 4), "pointer");
  refuses<Two>(std::string("\1\0\0\0\5\0\0\0\2\0\0\0", 12), "pointer");
}

TEST_CASE("whatever the bytes are, decoding ends with a value or a DecodeError", "[api][decode]") {
  const auto seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  withstands_mutations(Labelled{{1, 2}, "label", {{3, 4}}, 5, {{"k", {6, 7}}}, Color::Green, true},
                       random);
  withstands_mutations(Tree{1, {{2, {}}, {3, {{4, {}}}}}}, random);
  withstands_mutations(std::vector<Choice>{{1}, {"two"}, {Point{3, 3}}}, random);
  withstands_mutations(std::vector<std::vector<std::string>>{{"a"}, {"b", "c"}}, random);
  withstands_mutations(
      std::unordered_map<std::string, std::optional<std::vector<bool>>>{{"a", {{true}}}, {"b", {}}},
      random);
  withstands_mutations(std::vector{std::make_shared<int>(1), std::make_shared<int>(2)}, random);
  withstands_mutations(
      std::tuple(std::bitset<70>(5), std::set<char>{'a', 'b'}, std::deque<std::string>{"q"}),
      random);
  withstands_mutations(Link{1, std::make_unique<Link>(Link{2, nullptr})}, random);
}
