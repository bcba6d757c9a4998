#pragma once

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace troupe::tune {

/// Variables of the environment, until this object goes.
class Variables {
 public:
  using Values = std::initializer_list<std::pair<const std::string, std::string>>;

  explicit Variables(Values variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace troupe::tune
