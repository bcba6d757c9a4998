// Counts words by a tree of tasks. The leaves count a part of the text each; every other task adds
// the counts of two. A task is given refs to results that need not be there yet, so the driver
// builds the whole tree at once and waits for its root alone. It never sees the counts between.
//
//   word_count [--address HOST:PORT] < examples/core/jabberwocky.txt
//
// It prints:
//
//   91 different words, of which the most frequent are
//     the 19
//     and 14
//     he 7
//     in 6
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using Lines = std::vector<std::string>;
using Counts = std::map<std::string, std::int64_t>;

constexpr std::size_t kLinesOfATask = 8;  // For a large text take some thousand.
constexpr std::size_t kShown = 4;

Counts count(const Lines& lines) {
  Counts counts;
  for (const auto& line : lines) {
    std::string word;
    for (const unsigned char letter : line + ' ') {
      if (std::isalpha(letter)) {
        word += static_cast<char>(std::tolower(letter));
      } else if (!word.empty()) {
        ++counts[word];
        word.clear();
      }
    }
  }
  return counts;
}

Counts add(Counts left, const Counts& right) {
  for (const auto& [word, times] : right) left[word] += times;
  return left;
}

std::deque<troupe::Ref<Counts>> count_parts(std::istream& text) {
  std::deque<troupe::Ref<Counts>> parts;
  Lines lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
    if (lines.size() < kLinesOfATask) continue;
    parts.push_back(troupe::task<count>(lines));
    lines.clear();
  }
  parts.push_back(troupe::task<count>(lines));
  return parts;
}

Counts count_words(std::istream& text) {
  auto parts = count_parts(text);
  while (parts.size() > 1) {
    parts.push_back(troupe::task<add>(parts[0], parts[1]));
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  return parts.front().get();
}

void print(const Counts& counts) {
  std::vector<std::pair<std::string, std::int64_t>> entries(counts.begin(), counts.end());
  std::ranges::stable_sort(entries, std::greater(), [](const auto& entry) { return entry.second; });
  std::cout << entries.size() << " different words, of which the most frequent are\n";
  entries.resize(std::min(entries.size(), kShown));
  for (const auto& [word, times] : entries) std::cout << "  " << word << ' ' << times << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    print(count_words(std::cin));
  } catch (const std::exception& error) {
    std::cerr << "word_count: " << error.what() << '\n';
    return 1;
  }
}
