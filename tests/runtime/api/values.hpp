#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <troupe/detail/codec.hpp>

/// Types as a user writes them, for the tests of encoding.
namespace values {

enum class Color : unsigned char { Red, Green, Blue };

struct Point {
  double x = 0, y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};
struct Padded {
  char letter = 'a';
  int number = 0;
  friend bool operator==(const Padded&, const Padded&) = default;
};
struct Labelled {
  Point at;
  std::string label;
  std::vector<Point> path;
  std::optional<int> rank;
  std::map<std::string, Point> known;
  Color color = Color::Red;
  bool on = false;
  friend bool operator==(const Labelled&, const Labelled&) = default;
};
struct Tree {
  int value = 0;
  std::vector<Tree> children;
  friend bool operator==(const Tree&, const Tree&) = default;
};
struct Link {
  int value = 0;
  std::unique_ptr<Link> next;
};
struct Empty {
  friend bool operator==(const Empty&, const Empty&) = default;
};
struct Choice {
  std::variant<int, std::string, Point> value;
  friend bool operator==(const Choice&, const Choice&) = default;
};
struct Document {
  std::variant<std::string, std::vector<Document>, std::map<std::string, Document>> value;
};
struct WithMember {
  int kept = 1;
  int lost = 7;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(kept);
  }
};
struct WithFree {
  int kept = 1;
  int lost = 7;
};
template <class Archive>
void serialize(Archive& archive, WithFree& value) {
  archive(value.kept);
}
struct WithSplit {
  int value = 1;
};
template <class Archive>
void save(Archive& archive, const WithSplit& split) {
  archive(split.value * 2);
}
template <class Archive>
void load(Archive& archive, WithSplit& split) {
  archive(split.value);
}
class Private {
 public:
  int get() const { return value_; }
  void set(int value) { value_ = value; }

 private:
  friend class cereal::access;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value_);
  }
  int value_ = 3;
};

}  // namespace values

template <>
struct troupe::EnumRange<values::Color> {
  static constexpr auto first = values::Color::Red;
  static constexpr auto last = values::Color::Blue;
};
