#include "text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include <torch/types.h>

namespace text {
namespace {

constexpr std::int64_t kValidationBatches = 20;

Text tokens_of(const std::string& content, const std::string& name) {
  std::array<bool, 256> is_there{};
  for (const char character : content) is_there[static_cast<std::uint8_t>(character)] = true;
  Text text{torch::empty({static_cast<std::int64_t>(content.size())}, torch::kByte), "", name};
  std::array<std::uint8_t, 256> token{};
  for (std::size_t byte = 0; byte < is_there.size(); ++byte) {
    if (!is_there[byte]) continue;
    token[byte] = static_cast<std::uint8_t>(text.characters.size());
    text.characters += static_cast<char>(byte);
  }
  std::ranges::transform(content, text.tokens.data_ptr<std::uint8_t>(), [&](char character) {
    return token[static_cast<std::uint8_t>(character)];
  });
  return text;
}

/// Of a number below 10000.
std::string in_words(int number) {
  constexpr std::array small{"",        "one",     "two",       "three",    "four",
                             "five",    "six",     "seven",     "eight",    "nine",
                             "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                             "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  constexpr std::array tens{"",      "",      "twenty",  "thirty", "forty",
                            "fifty", "sixty", "seventy", "eighty", "ninety"};
  const auto joined = [](const std::string& first, const char* between, int rest) {
    return rest == 0 ? first : first + between + in_words(rest);
  };
  if (number < 20) return small.at(static_cast<std::size_t>(number));
  if (number < 100) return joined(tens.at(static_cast<std::size_t>(number / 10)), "-", number % 10);
  if (number < 1000) return joined(in_words(number / 100) + " hundred", " and ", number % 100);
  return joined(in_words(number / 1000) + " thousand", " ", number % 1000);
}

/// Those that begin at every `stride`-th place, `most` at most.
troupe::train::Dataset windows(const at::Tensor& tokens, std::int64_t context, std::int64_t batch,
                               std::int64_t stride, std::int64_t most) {
  const auto ends =
      tokens.size(0) - context;  // places that have a whole window and a next character
  auto rows = ends < 1 ? 0 : std::min((ends - 1) / stride + 1, most);
  rows -= rows % batch;
  if (rows == 0) return {};
  const auto from = [&](std::int64_t first) {
    return tokens.slice(0, first).unfold(0, context, stride).slice(0, 0, rows);
  };
  return {from(0), from(1)};
}

}  // namespace

Text read(const std::string& file) {
  if (std::filesystem::is_directory(file)) throw std::runtime_error(file + " is a folder");
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error(file + ": " + std::strerror(errno));
  std::ostringstream content;
  content << in.rdbuf();
  if (content.str().empty()) throw std::runtime_error(file + " has nothing in it");
  return tokens_of(content.str(), file);
}

Text made_up() {
  constexpr int kNumbers = 4000;
  std::string content;
  for (int line = 1; line <= kNumbers; ++line) content += in_words(line * 7919 % 10'000) + '\n';
  return tokens_of(content, "the made-up text");
}

Parts parts(const Text& text, std::int64_t context, std::int64_t batch) {
  const auto length = text.tokens.size(0), cut = length - length / 10;
  const auto most = kValidationBatches * batch;
  const auto stride = std::max(context, (length - cut) / most);
  const auto all = std::numeric_limits<std::int64_t>::max();
  const Parts parts{windows(text.tokens.slice(0, 0, cut), context, batch, 1, all),
                    windows(text.tokens.slice(0, cut), context, batch, stride, most)};
  if (!parts.training.data.defined() || !parts.validation.data.defined()) {
    throw std::runtime_error(
        text.name + " is too short: the last tenth of its " + std::to_string(length) +
        " characters has to have " + std::to_string(batch) + " rows of " + std::to_string(context) +
        ", which takes " + std::to_string(10 * (batch * context + 1)) + " or more");
  }
  return parts;
}

}  // namespace text
