#include <random>

#include <catch2/catch.hpp>

#include "objects/blocking.hpp"
#include "rounds.hpp"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using LoanThen = IdleLoan::Then;

/// A slice is over in which the process computed for one part in `part` of it; 0: not at all.
LoanThen pass_slice(IdleLoan& loan, int part, bool has_call = true) {
  const auto time = loan.slice();
  return loan.passed(time, part == 0 ? 0ns : time / part, has_call);
}

}  // namespace

TEST_CASE("a thread of the program's own lends the CPU of a call that computes nothing",
          "[runtime][tasks][cpus]") {
  IdleLoan loan;
  CHECK(pass_slice(loan, 0) == LoanThen::Lend);
  CHECK(loan.is_lent());
  CHECK(pass_slice(loan, 20) == LoanThen::Nothing);
  // The call goes on: it has its CPU again.
  CHECK(pass_slice(loan, 2) == LoanThen::TakeBack);
  CHECK_FALSE(loan.is_lent());
  CHECK(pass_slice(loan, 1) == LoanThen::Nothing);
  CHECK(pass_slice(loan, 0) == LoanThen::Lend);
}

TEST_CASE("a thread of the program's own lends nothing of a call that computes, or where none is",
          "[runtime][tasks][cpus]") {
  IdleLoan loan;
  for (int slice = 0; slice < 10; ++slice) {
    CHECK(pass_slice(loan, 1) == LoanThen::Nothing);
    CHECK(pass_slice(loan, 0, false) == LoanThen::Nothing);
  }
  CHECK(pass_slice(loan, 0) == LoanThen::Lend);
  // The call has returned, and the thread waits on: what the process runs next has its CPU.
  CHECK(pass_slice(loan, 0, false) == LoanThen::TakeBack);
}

TEST_CASE("whatever a process computes, its CPU is lent just after slices in which it was idle",
          "[runtime][tasks][cpus]") {
  const auto first = test::first_seed();
  for (unsigned seed = first; seed < first + test::rounds(100); ++seed) {
    INFO("TROUPE_TEST_SEED=" << seed);
    std::minstd_rand random(seed);
    IdleLoan loan;
    for (int slice = 0; slice < 100; ++slice) {
      const bool was_lent = loan.is_lent();
      const auto time = loan.slice() * std::uniform_int_distribution(1, 3)(random);
      const auto percent = std::uniform_int_distribution(0, 30)(random);
      const bool has_call = std::bernoulli_distribution(0.8)(random);
      const auto then = loan.passed(time, time * percent / 100, has_call);
      REQUIRE(loan.is_lent() == (has_call && percent < 10));
      REQUIRE((then != LoanThen::Nothing) == (was_lent != loan.is_lent()));
      REQUIRE((then == LoanThen::Lend) == (!was_lent && loan.is_lent()));
      REQUIRE(loan.slice() <= IdleLoan::kLongest);
    }
  }
}

}  // namespace troupe::runtime
