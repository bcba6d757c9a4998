#include <troupe/troupe.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

using troupe::pick;
using troupe::Ref;
using troupe::spawn;
using troupe::task;

namespace {

struct Spot {
  double x = 0, y = 0;
  std::string tag = "p";
};

struct Parcel {
  std::unique_ptr<int> content;
  int weight = 0;
};

std::string file_name(const std::filesystem::path& path) { return path.filename().string(); }
std::filesystem::path folder(std::filesystem::path path) { return path.parent_path(); }
int hidden(int x) { return x + 100; }
int plus_one(int x) noexcept { return x + 1; }
[[maybe_unused]] int over(int x) { return x; }
double over(double x) { return x * 2; }
void nothing() {}
Ref<int> nested_task(int x) { return task<plus_one>(x); }
int follow(const Ref<int>& ref, int y) { return ref.get() + y; }
int sum_all(const std::vector<Ref<int>>& refs) {
  int sum = 0;
  for (const auto& ref : refs) sum += ref.get();
  return sum;
}
template <class T>
T twice(T x) {
  return x + x;
}
int or_zero(std::optional<int> x) { return x.value_or(0); }

struct Base {
  int inherited() const { return 5; }
};

struct Service : Base {
  int over(int x) { return x; }
  std::string over(const std::string& s) { return s + "!"; }
  int over(int x) const { return -x; }
  int quiet(int x) noexcept { return x; }
  int on_lvalue(int x) & { return x + 1; }
  double sum(const std::vector<double>& v) const {
    return std::accumulate(v.begin(), v.end(), 0.0);
  }
  std::size_t length(std::string_view s) { return s.size(); }
  std::string_view shown() const { return name; }
  const std::string& by_reference() const { return name; }
  Spot join(const Spot& p, Spot q) { return {p.x + q.x, p.y + q.y, p.tag + q.tag}; }
  int open(std::unique_ptr<int> p) { return *p; }
  std::unique_ptr<int> close(int x) { return std::make_unique<int>(x); }
  int weigh(Parcel p) { return *p.content + p.weight; }
  int take(std::vector<int>&& v) { return static_cast<int>(v.size()); }
  int with_default(int a, int b = 7) { return a + b; }
  void set(std::string s) { name = std::move(s); }
  int fail() { throw std::out_of_range("beyond"); }
  static int helper(int x) { return x * 3; }
  std::string name = "svc";
};

struct Counter {
  explicit Counter(int start) : n(start) {}
  int add(int x) { return n += x; }
  int n;
};

struct Holder {
  Holder(Ref<int> r, const std::string& t) : ref(std::move(r)), text(t) {}
  int value() const { return ref.get(); }
  std::string label() const { return text; }
  Ref<int> ref;
  std::string text;
};

int poke(const troupe::Actor<Counter>& counter, int x) {
  return counter.call<&Counter::add>(x).get();
}

}  // namespace

TEST_CASE("a task is a function named in a template argument", "[api][task]") {
  CHECK(task<plus_one>(1).get() == 2);
  CHECK(task<hidden>(1).get() == 101);
  CHECK(task<twice<int>>(4).get() == 8);
  CHECK(task<twice<std::string>>("a").get() == "aa");
  CHECK(task<pick<double(double)>(over)>(2.5).get() == 5);
  CHECK(task<&Service::helper>(2).get() == 6);
  CHECK(task<file_name>("/data/rows.bin").get() == "rows.bin");
  CHECK(task<folder>(std::filesystem::path("/data/rows.bin")).get() == "/data");
  task<nothing>().get();
}

TEST_CASE("two lambdas of one function are two tasks", "[api][task]") {
  const auto one = task<[](int x) { return x + 1; }>(1);
  const auto two = task<[](int x) { return x + 2; }>(1);
  static constexpr auto named = [](int x) { return x * 4; };
  CHECK(one.get() == 2);
  CHECK(two.get() == 3);
  CHECK(task<named>(2).get() == 8);
}

TEST_CASE("methods of every kind can be called", "[api][actor]") {
  const auto service = spawn<Service>();
  CHECK(service.call<pick<int(int)>(&Service::over)>(4).get() == 4);
  CHECK(service.call<pick<int(int) const>(&Service::over)>(4).get() == -4);
  CHECK(service.call<pick<std::string(const std::string&)>(&Service::over)>("x").get() == "x!");
  CHECK(service.call<&Service::quiet>(3).get() == 3);
  CHECK(service.call<&Service::on_lvalue>(3).get() == 4);
  CHECK(service.call<&Service::sum>(std::vector{1.0, 2.0}).get() == 3);
  CHECK(service.call<&Service::inherited>().get() == 5);
  CHECK(service.call<[](Service& s, int x) { return s.with_default(x); }>(1).get() == 8);
  CHECK(service.call<[](const Service& s) { return s.inherited(); }>().get() == 5);
}

TEST_CASE("arguments convert as in a plain call, and results come back as values", "[api][actor]") {
  const auto service = spawn<Service>();
  CHECK(service.call<&Service::length>("abc").get() == 3);
  CHECK(service.call<&Service::shown>().get() == "svc");
  service.call<&Service::set>("new").get();
  service.call<&Service::set>(std::string_view("newer, still").substr(0, 5)).get();
  CHECK(service.call<&Service::shown>().get() == "newer");
  service.call<&Service::set>("new").get();
  CHECK(service.call<&Service::by_reference>().get() == "new");
  CHECK(service.call<&Service::join>(Spot{1, 2, "a"}, Spot{.x = 3}).get().tag == "ap");
  CHECK(service.call<&Service::take>(std::vector{1, 2, 3}).get() == 3);
}

TEST_CASE("a number that its parameter cannot hold is refused where it is passed", "[api][task]") {
  const auto refused = [](const auto& call, const std::string& number, const std::string& type) {
    CHECK_THROWS_AS(call(), std::invalid_argument);
    CHECK_THROWS_WITH(
        call(), Catch::Contains(": argument 1 is " + number + ", which its parameter, of type " +
                                type + ", cannot hold"));
  };
  refused([] { task<plus_one>(5'000'000'000L); }, "5000000000", "int");
  refused([] { task<plus_one>(4'000'000'000U); }, "4000000000", "int");
  refused([] { task<plus_one>(3.7); }, "3.7", "int");
  refused([] { task<plus_one>(std::nan("")); }, "nan", "int");
  refused([] { task<plus_one>(2147483648.0); }, "2147483648", "int");
  refused([] { task<twice<unsigned>>(-1); }, "-1", "unsigned int");
  refused([] { task<twice<unsigned>>(-0.5F); }, "-0.5", "unsigned int");
  refused([] { task<twice<float>>(1e300); }, "1e+300", "float");
  refused([] { task<twice<std::uint64_t>>(std::ldexp(1.0, 64)); }, "1.8446744073709552e+19",
          "long unsigned int");
  const auto service = spawn<Service>();
  CHECK_THROWS_WITH(service.call<&Service::quiet>(1LL << 40),
                    Catch::Contains("Service::quiet: argument 1 is 1099511627776"));

  enum Large : long { kLarge = 1L << 40 };
  refused([] { task<plus_one>(kLarge); }, "1099511627776", "int");
  refused([] { task<or_zero>(1LL << 40); }, "1099511627776", "int");

  CHECK(task<or_zero>(5L).get() == 5);
  CHECK(task<or_zero>(std::nullopt).get() == 0);
  CHECK(task<or_zero>(std::optional<short>(4)).get() == 4);
  CHECK(task<twice<std::uint8_t>>(char(-28)).get() == std::uint8_t(2 * 228));  // a byte of a text
  CHECK(task<plus_one>(5L).get() == 6);
  CHECK(task<plus_one>(4.0).get() == 5);
  CHECK(task<plus_one>(-2147483648.0).get() == -2147483647);
  CHECK(task<plus_one>('a').get() == 'b');
  CHECK(task<plus_one>(true).get() == 2);
  CHECK(task<twice<float>>(0.1).get() == 0.2F);
  CHECK(task<twice<double>>((1LL << 53) + 1).get() == std::ldexp(1.0, 54));
  CHECK(std::isinf(task<twice<float>>(std::numeric_limits<double>::infinity()).get()));
  CHECK(task<twice<std::uint64_t>>(9223372036854775808.0).get() == 0);
}

TEST_CASE("what can only be moved travels", "[api][actor]") {
  const auto service = spawn<Service>();
  auto owned = std::make_unique<int>(8);
  CHECK(service.call<&Service::open>(std::move(owned)).get() == 8);
  CHECK(*service.call<&Service::close>(6).get() == 6);
  CHECK(service.call<&Service::weigh>(Parcel{std::make_unique<int>(4), 5}).get() == 9);
}

TEST_CASE("a ref is as good as a value, and travels as a ref where a ref is asked for",
          "[api][ref]") {
  const auto one = task<plus_one>(0);
  CHECK(task<plus_one>(one).get() == 2);
  CHECK(task<follow>(one, 5).get() == 6);
  CHECK(task<sum_all>(std::vector{one, troupe::put(4)}).get() == 5);
  CHECK(task<nested_task>(6).get().get() == 7);
  CHECK(task<follow>(task<nested_task>(1), 1).get() == 3);
}

TEST_CASE("a constructor gets the values of refs, unless it takes the refs", "[api][actor]") {
  CHECK(spawn<Counter>(task<plus_one>(1)).call<&Counter::add>(1).get() == 3);
  const auto holder = spawn<Holder>(task<plus_one>(1), "text");
  CHECK(holder.call<&Holder::value>().get() == 2);
  CHECK(holder.call<&Holder::label>().get() == "text");
}

TEST_CASE("a handle travels inside arguments", "[api][actor]") {
  const auto counter = spawn<Counter>(10);
  CHECK(task<poke>(counter, 5).get() == 15);
  CHECK(counter.call<&Counter::add>(1).get() == 16);
}

TEST_CASE("an exception comes home with its type, its text and its place", "[api][errors]") {
  const auto service = spawn<Service>();
  const auto ref = service.call<&Service::fail>();
  try {
    ref.get();
    FAIL("it did not throw");
  } catch (const troupe::TaskError& error) {
    CHECK(error.type() == "std::out_of_range");
    CHECK(error.failure().message == "beyond");
    CHECK(error.where() == "{anonymous}::Service::fail");
    CHECK(std::string(error.what()) == "std::out_of_range: beyond (in {anonymous}::Service::fail)");
  }
}

TEST_CASE("a failure passes through calls that depend on it", "[api][errors]") {
  const auto service = spawn<Service>();
  const auto bad = service.call<&Service::fail>();
  try {
    task<plus_one>(task<plus_one>(bad)).get();
    FAIL("it did not throw");
  } catch (const troupe::TaskError& error) {
    CHECK(error.type() == "std::out_of_range");
    CHECK(error.where() == "{anonymous}::Service::fail");
  }
}

TEST_CASE("a killed actor fails its calls by its own error", "[api][actor]") {
  const auto counter = spawn<Counter>(1);
  counter.ready().get();
  counter.kill();
  CHECK_THROWS_AS(counter.call<&Counter::add>(1).get(), troupe::ActorDied);
}

TEST_CASE("a named actor is found by name and type", "[api][actor]") {
  const auto counter = troupe::with({.name = "tally"}).spawn<Counter>(3);
  CHECK(troupe::find<Counter>("tally").call<&Counter::add>(1).get() == 4);
  CHECK_THROWS_AS(troupe::find<Service>("tally"), troupe::Refused);
  CHECK_THROWS_AS(troupe::find<Counter>("nobody"), troupe::Refused);
}

TEST_CASE("a gang is called rank by rank or all at once", "[api][gang]") {
  const auto gang = troupe::gang<Counter>({.size = 3, .strategy = troupe::Spread}, 10);
  REQUIRE(gang.size() == 3);
  CHECK(gang.rank(1).call<&Counter::add>(5).get() == 15);
  CHECK(troupe::get(gang.all<&Counter::add>(1)) == std::vector{11, 16, 11});
  CHECK(troupe::get({troupe::put(1), troupe::put(2)}) == std::vector{1, 2});
  CHECK_THROWS_AS(gang.rank(3), std::out_of_range);
  CHECK_THROWS_WITH(gang.rank(3), "rank 3 of a gang of 3 ranks: they are numbered from 0");
  CHECK_THROWS_AS(troupe::gang<Counter>({.size = 0}, 1), std::invalid_argument);
}

TEST_CASE("options stand before a gang as before a task", "[api][gang]") {
  const auto gang = troupe::with({.cpus = 2}).gang<Counter>({.size = 2}, 10);
  REQUIRE(gang.size() == 2);
  CHECK(troupe::get(gang.all<&Counter::add>(1)) == std::vector{11, 11});
  CHECK(troupe::with({.gpus = 1}).place<Counter>({.size = 3}, 1).get().size() == 3);
  CHECK_THROWS_AS(troupe::with({.name = "n"}).gang<Counter>({.size = 2}, 1), std::invalid_argument);
  CHECK_THROWS_AS(troupe::with({}).gang<Counter>({.size = 0}, 1), std::invalid_argument);
}

TEST_CASE("an empty handle says that it is empty", "[api][actor]") {
  CHECK_THROWS_AS(troupe::Actor<Counter>().call<&Counter::add>(1), std::logic_error);
  CHECK_THROWS_AS(Ref<int>().get(), std::logic_error);
  CHECK_FALSE(Ref<int>());
}
