// Makes a C++ program faster by search: which order of its loops, and which blocks, let a product of
// two matrices run fastest on this machine? Each report is one more measurement, so that a slow
// choice is stopped after its first ones. Trials run one at a time: others would take from what they
// measure.
//
//   throughput [--address HOST:PORT]
//
// The speeds are shown on standard error, as they differ from machine to machine. It prints:
//
//   the best of 30 ways to multiply is faster than the first guess
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

namespace {

constexpr int kSize = 192;  // rows and columns

struct Loops {
  std::string order = "row column inner";
  bool blocked = false;
  int block = kSize;     // inner indices of a block, where the loops are blocked
  int rows_at_once = 1;  // rows of a block, where the loops are blocked
};

using Matrix = std::vector<double>;

/// Adds rows [row, row_end) of the product, of the inner indices [inner, inner_end).
void multiply(const Loops& loops, const Matrix& a, const Matrix& b, Matrix& c, int row, int row_end,
              int inner, int inner_end) {
  if (loops.order == "row column inner") {
    for (int i = row; i < row_end; ++i)
      for (int j = 0; j < kSize; ++j)
        for (int k = inner; k < inner_end; ++k)
          c[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
  } else if (loops.order == "row inner column") {
    for (int i = row; i < row_end; ++i)
      for (int k = inner; k < inner_end; ++k)
        for (int j = 0; j < kSize; ++j) c[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
  } else {
    for (int k = inner; k < inner_end; ++k)
      for (int i = row; i < row_end; ++i)
        for (int j = 0; j < kSize; ++j) c[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
  }
}

void multiply(const Loops& loops, const Matrix& a, const Matrix& b, Matrix& c) {
  const int rows = loops.blocked ? loops.rows_at_once : kSize;
  const int inner = loops.blocked ? loops.block : kSize;
  for (int row = 0; row < kSize; row += rows)
    for (int k = 0; k < kSize; k += inner)
      multiply(loops, a, b, c, row, std::min(row + rows, kSize), k, std::min(k + inner, kSize));
}

/// One trial: ten measurements, of which the best counts.
void measure(tune::Context& context, const Loops& loops) {
  const Matrix a(kSize * kSize, 0.5), b(kSize * kSize, 2.0);
  for (int repetition = 0; repetition < 10; ++repetition) {
    Matrix c(kSize * kSize, 0.0);
    const auto begin = std::chrono::steady_clock::now();
    multiply(loops, a, b, c);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double gflops = 2.0 * kSize * kSize * kSize / took.count() / 1e9;
    if (context.report({{"gflops", gflops}, {"sum", c.front()}}) == troupe::Verdict::Stop) return;
  }
}

void search() {
  // [sweep]
  const auto is_blocked = [](const Loops& loops) { return loops.blocked; };
  const auto results = tune::run<measure>(
      {.space = {{"order",
                  tune::choice({"row column inner", "row inner column", "inner row column"})},
                 {"blocked", tune::choice({false, true})},
                 {"block", tune::log_integer(4, kSize), is_blocked},
                 {"rows_at_once", tune::log_integer(1, kSize), is_blocked}},
       .trials = 30,
       .metric = "gflops",
       .mode = tune::Max,
       .scheduler = tune::median_stopping({.grace = 3}),
       .seed = 1,
       .first = {Loops{}},
       .searcher = tune::tpe(),
       .max_concurrent = 1});
  // [/sweep]
  const auto guess = results.trials().front().value();
  const auto& best = results.best();
  std::cerr << "the first guess: " << guess << " Gflop/s; " << best << '\n';
  std::cout << "the best of " << results.trials().size() << " ways to multiply is "
            << (best.value() > guess ? "faster than the first guess\n" : "the first guess\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    search();
  } catch (const std::exception& error) {
    std::cerr << "throughput: " << error.what() << '\n';
    return 1;
  }
}
