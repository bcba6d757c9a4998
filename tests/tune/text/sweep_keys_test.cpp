#include <troupe/tune/detail/sweep_keys.hpp>

#include <catch2/catch.hpp>

namespace sweep_keys_test {

using troupe::tune::detail::with_sweep_keys;

TEST_CASE("names of options become the keys of a sweep's file", "[tune][text]") {
  CHECK(with_sweep_keys("tune: .each.workers is 0 (.stop_grace)") ==
        "tune: gang.ranks is 0 (grace)");
  CHECK(with_sweep_keys("tune::tpe: .gamma is 2") == "tpe: gamma is 2");
}

TEST_CASE("a user's own text in a message is no name of an option", "[tune][text]") {
  CHECK(with_sweep_keys("the .scheduler's field '.each .stop_grace' is not .first") ==
        "the scheduler's field '.each .stop_grace' is not first");
  CHECK(with_sweep_keys("`troupe tune run .sweep.toml` begins one", {".sweep.toml"}) ==
        "`troupe tune run .sweep.toml` begins one");
  CHECK(with_sweep_keys("cannot make /a b/.each (.each) c: .storage", {"/a b/.each (.each) c"}) ==
        "cannot make /a b/.each (.each) c: storage");
}

}  // namespace sweep_keys_test
