#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <troupe/trainable.hpp>
#include <troupe/tune/scalar.hpp>

namespace troupe::tune {

/// Writes a JSON object as one line of text, in the order in which it is told of its values: what
/// dump() of a Json gives, at a tenth of the cost, for lines of which there are thousands in a
/// second. A number that is not finite is the text "nan", "inf" or "-inf"; names of metrics are as
/// name_in_utf8() has them, and in other texts what is not UTF-8 is replaced.
class JsonLine {
 public:
  JsonLine& add(std::string_view key, double number);
  JsonLine& add(std::string_view key, std::string_view text);
  JsonLine& add(std::string_view key, const Configuration& configuration);
  JsonLine& add(std::string_view key, const Metrics& metrics);
  template <std::integral Number>
  JsonLine& add(std::string_view key, Number number) {
    return add_json(key, std::to_string(number));
  }
  /// Text that is JSON already.
  JsonLine& add_json(std::string_view key, std::string_view json);

  /// The object, without a line end. The line is of no use then.
  std::string end();

 private:
  void begin(std::string_view key);
  void append(double number);
  void append(std::string_view text);
  void append(const Scalar& scalar);

  std::string line_ = "{";
};

}  // namespace troupe::tune
