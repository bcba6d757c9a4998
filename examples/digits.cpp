#include "digits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <zlib.h>

namespace digits {
namespace {

constexpr std::int64_t kPixels = 64;
constexpr std::size_t kClasses = 6;
constexpr float kBrightest = 16;

std::string unzip(const std::string& file) {
  gzFile in = gzopen(file.c_str(), "rb");
  if (!in)
    throw std::runtime_error(file + ": " + std::strerror(errno) + "; name the file with --data");
  std::string text;
  std::vector<char> buffer(1 << 16);
  int got = 0;
  while ((got = gzread(in, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  gzclose(in);
  if (got < 0) throw std::runtime_error(file + " is not a gzip file");
  return text;
}

struct Rows {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
};

void add_row(Rows& rows, const std::string& line, const std::string& where) {
  std::istringstream in(line);
  std::vector<float> numbers;
  for (std::string number; std::getline(in, number, ',');) numbers.push_back(std::stof(number));
  if (numbers.size() != kPixels + 1 || numbers.back() < 0 || numbers.back() > 9) {
    throw std::runtime_error(where + ": a row is 64 pixels and a label 0..9");
  }
  rows.labels.push_back(static_cast<std::int64_t>(numbers.back()));
  numbers.pop_back();
  for (float pixel : numbers) rows.pixels.push_back(pixel / kBrightest);
}

/// The rows whose number modulo kClasses is among `classes`. The file goes from writer to writer,
/// so that parts cut from it in one piece would differ in more than their rows.
troupe::train::Dataset part(const Rows& rows, const std::vector<std::size_t>& classes) {
  Rows chosen;
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    if (std::ranges::find(classes, row % kClasses) == classes.end()) continue;
    const auto first = rows.pixels.begin() + static_cast<std::ptrdiff_t>(row * kPixels);
    chosen.pixels.insert(chosen.pixels.end(), first, first + kPixels);
    chosen.labels.push_back(rows.labels[row]);
  }
  const auto count = static_cast<std::int64_t>(chosen.labels.size());
  return {at::from_blob(chosen.pixels.data(), {count, kPixels}, at::kFloat).clone(),
          at::from_blob(chosen.labels.data(), {count}, at::kLong).clone()};
}

}  // namespace

double accuracy(torch::nn::Sequential& model, const troupe::train::Dataset& rows,
                c10::Device device) {
  const torch::NoGradGuard no_gradients;
  const auto guess = model->forward(rows.data.to(device)).argmax(1).cpu();
  return guess.eq(rows.target).to(torch::kDouble).mean().item<double>();
}

Parts load(const std::string& file) {
  Rows rows;
  std::istringstream in(unzip(file));
  int number = 0;
  for (std::string line; std::getline(in, line);)
    add_row(rows, line, file + ", line " + std::to_string(++number));
  if (rows.labels.size() < 100 * kClasses)
    throw std::runtime_error(file + " has only " + std::to_string(number) + " rows");
  return {part(rows, {0, 1, 2, 3}), part(rows, {4}), part(rows, {5})};
}

}  // namespace digits
