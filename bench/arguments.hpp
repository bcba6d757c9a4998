#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace troupe::bench {

/// The command line of a benchmark. Behind it is CLI11, which takes longer to compile than most
/// benchmarks.
class Arguments {
 public:
  explicit Arguments(const std::string& purpose);
  ~Arguments();

  /// A value that is not given stays as it is, which the help shows. It must live until `parse` has
  /// returned. A name without dashes is a place on the command line. A double is finite and not
  /// negative.
  void option(const std::string& name, int& value, const std::string& help);
  void option(const std::string& name, unsigned& value, const std::string& help);
  void option(const std::string& name, double& value, const std::string& help);
  void option(const std::string& name, std::string& value, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);

  /// Ends the process with a text: with 2 where an argument is wrong, with 0 where help is asked
  /// for.
  void parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace troupe::bench
