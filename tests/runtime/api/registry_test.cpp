#include <troupe/troupe.hpp>

#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include "api/signature.hpp"
#include "twins.hpp"

using namespace troupe::detail;

namespace {

struct Box {
  explicit Box(int n) : content(n) {}
  int weight() const { return content; }
  int content;
};
int free_function(int x) { return x; }

template <auto F>
const FunctionKey& key_of() {
  return Invoker<F, void, decltype(task_signature<F>())>::key;
}

}  // namespace

TEST_CASE("a function is found by its key, and an unknown one is not", "[api][registry]") {
  const auto& key = key_of<free_function>();
  const auto* found = find_function(key.name, key.offset);
  REQUIRE(found != nullptr);
  CHECK(found->invoke != nullptr);
  CHECK(found->construct == nullptr);
  CHECK(find_function(key.name ^ 1, key.offset) == nullptr);
}

TEST_CASE("an only function of its name is found at another place in the image",
          "[api][registry]") {
  const auto& key = key_of<free_function>();
  CHECK(find_function(key.name, key.offset + 64) != nullptr);
}

TEST_CASE("of a function that another program calls and this one lacks, it is said what differs",
          "[api][registry]") {
  CHECK_THAT(why_no_function("{anonymous}::free_function"),
             Catch::Contains("has a '{anonymous}::free_function' with another signature, "
                             "int (int): give both programs the same"));
  CHECK_THAT(why_no_function("Box::volume"),
             Catch::Contains("has no function 'Box::volume' that the runtime knows of"));
}

TEST_CASE("the signature of a function of this program is known by its key", "[api][registry]") {
  CHECK(signature_of(key_of<free_function>()) == "int (int)");
  using Weight = Invoker<&Box::weight, Box, SignatureOf<decltype(&Box::weight)>::type>;
  CHECK(signature_of(Weight::key) == "int () const");
  CHECK(signature_of({.name = 1, .offset = 2, .label = "none"}).empty());
}

TEST_CASE("labels are the names that people use", "[api][registry]") {
  CHECK(key_of<free_function>().label == "{anonymous}::free_function");
  CHECK(function_name<&Box::weight> == "{anonymous}::Box::weight");
  CHECK(type_name<std::vector<int>> == "std::vector<int>");
  const auto& box = Maker<Box, int>::key;
  CHECK(box.label == "{anonymous}::Box");
  CHECK(find_function(box.name, box.offset)->construct != nullptr);
}

TEST_CASE("functions of one name in two files are two functions", "[api][registry]") {
  const auto& one = first_twin();
  const auto& two = second_twin();
  REQUIRE(one.name == two.name);
  CHECK(one.offset != two.offset);
  CHECK(call_first_twin(1) == 2);
  CHECK(call_second_twin(1) == 1001);
  CHECK(find_function(one.name, one.offset)->invoke != find_function(two.name, two.offset)->invoke);
  CHECK(find_function(one.name, 1) == nullptr);
}

TEST_CASE("a call with another number of arguments is refused by name", "[api][registry]") {
  const auto& key = key_of<free_function>();
  CHECK_THROWS_WITH(find_function(key.name, key.offset)->invoke(nullptr, {}),
                    Catch::Contains("free_function takes 1 arguments, but 0 arrived"));
}
