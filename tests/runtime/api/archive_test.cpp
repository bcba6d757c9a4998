#include <troupe/detail/sendable.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

#include "values.hpp"

using namespace troupe::detail;
using namespace values;

namespace {

template <class T>
T again(const T& value) {
  static_assert(sendable<T>());
  return decode<T>(encode(value));
}
template <class T>
bool survives(const T& value) {
  return again(value) == value;
}

/// Behind the defaults of such fields g++ 12 can not count fields as Boost.PFR does.
struct WithLists {
  std::vector<std::string> names{"a", "b"};
  std::vector<std::vector<int>> rows{{1}, {2, 3}};
  std::map<std::string, int> table{{"a", 1}};
  std::vector<Point> points{{}};
  int last = 4;
  bool operator==(const WithLists&) const = default;
};

}  // namespace

static_assert(packed<Point> && packed<std::array<Point, 3>> && packed<std::int64_t>);
static_assert(!packed<Padded> && !packed<bool> && !packed<Color> && !packed<WithFree> &&
              !packed<Empty>);

TEST_CASE("numbers, enums and strings survive", "[api][archive]") {
  CHECK(survives(-5));
  CHECK(survives(std::numeric_limits<std::uint64_t>::max()));
  CHECK(survives(1e-300));
  CHECK(survives(true));
  CHECK(survives('x'));
  CHECK(survives(Color::Blue));
  CHECK(survives(std::string("nul\0inside", 10)));
  CHECK(survives(std::u16string(u"wide")));
}

TEST_CASE("standard containers survive", "[api][archive]") {
  CHECK(survives(std::vector{1, 2, 3}));
  CHECK(survives(std::vector<bool>{true, false, true}));
  CHECK(survives(std::vector<std::string>{"a", ""}));
  CHECK(survives(std::deque<Point>{{1, 2}, {3, 4}}));
  CHECK(survives(std::list<std::string>{"a", "b"}));
  CHECK(survives(std::map<int, std::vector<int>>{{1, {2}}, {3, {}}}));
  CHECK(survives(std::unordered_map<std::string, int>{{"a", 1}, {"b", 2}}));
  CHECK(survives(std::set<int>{3, 1}));
  CHECK(survives(std::unordered_set<int>{3, 1}));
  CHECK(survives(std::array<bool, 2>{true, false}));
  CHECK(survives(std::bitset<70>(0x5a5a)));
}

TEST_CASE("an aggregate with lists for defaults survives", "[api][archive]") {
  STATIC_REQUIRE(fields_of<WithLists> == 5);
  CHECK(survives(WithLists{}));
  CHECK(survives(WithLists{.names = {"c"}, .last = 5}));
}

TEST_CASE("standard vocabulary types survive", "[api][archive]") {
  CHECK(survives(std::pair(1, std::string("b"))));
  CHECK(survives(std::tuple(1, 2.0, std::string("c"))));
  CHECK(survives(std::optional<std::string>("d")));
  CHECK(survives(std::optional<int>()));
  CHECK(survives(std::variant<int, std::string>("e")));
  CHECK(survives(std::complex<double>(1, 2)));
  CHECK(survives(std::chrono::milliseconds(5)));
  CHECK(survives(std::filesystem::path("/a folder/file")));
  CHECK(survives(std::vector<std::filesystem::path>{"a", ""}));
  CHECK(survives(std::chrono::system_clock::time_point(std::chrono::seconds(7))));
}

TEST_CASE("plain aggregates survive without a line of code", "[api][archive]") {
  CHECK(survives(Padded{'z', 4}));
  CHECK(survives(Labelled{{1, 2}, "l", {{3, 4}}, 5, {{"k", {6, 7}}}, Color::Green, true}));
  CHECK(survives(Tree{1, {{2, {}}, {3, {{4, {}}}}}}));
  CHECK(survives(Choice{Point{1, 2}}));
  CHECK(survives(Empty{}));
  CHECK(survives(std::vector<Empty>(3)));
  CHECK(survives(std::vector<Padded>{{'a', 1}, {'b', 2}}));
}

TEST_CASE("an author's own functions are used, wherever they stand", "[api][archive]") {
  CHECK(again(WithMember{4, 5}).kept == 4);
  CHECK(again(WithMember{4, 5}).lost == 7);
  CHECK(again(WithFree{4, 5}).kept == 4);
  CHECK(again(WithFree{4, 5}).lost == 7);
  CHECK(again(std::vector<WithFree>{{4, 5}}).at(0).lost == 7);
  CHECK(again(WithSplit{4}).value == 8);
  Private value;
  value.set(9);
  CHECK(again(value).get() == 9);
}

TEST_CASE("pointers carry what they point to, and share it again where they shared it",
          "[api][archive]") {
  CHECK(*again(std::make_unique<int>(5)) == 5);
  CHECK(again(std::unique_ptr<int>()) == nullptr);
  const auto shared = std::make_shared<const std::string>("once");
  const auto copy =
      again(std::vector{shared, std::make_shared<const std::string>("twice"), shared});
  CHECK(*copy[0] == "once");
  CHECK(*copy[1] == "twice");
  CHECK(copy[0] == copy[2]);
}

TEST_CASE("arrays of plain numbers travel as they lie", "[api][archive]") {
  CHECK(encode(std::vector<Point>(10)).bytes.size() == 8 + 10 * sizeof(Point));
  CHECK(encode(Point{1, 2}).bytes.size() == sizeof(Point));
  CHECK(encode(Padded{}).bytes.size() == 5);  // without the padding, which holds whatever lay there
}

TEST_CASE("a value that nests too deep is refused where it is sent", "[api][archive]") {
  Link head;
  for (int i = 0; i < kMaxDepth; ++i) {
    Link next{i, std::make_unique<Link>(std::move(head))};
    head = std::move(next);
  }
  CHECK(again(*head.next).value == kMaxDepth - 2);
  Document document{std::string("leaf")};
  for (int i = 0; i < kMaxDepth - 1; ++i) document = {std::vector{std::move(document)}};
  CHECK(again(document).value.index() == 1);
  Link longer{0, std::make_unique<Link>(std::move(head))};
  CHECK_THROWS_AS(encode(longer), std::length_error);
}
