#include "arguments.hpp"

#include <cmath>
#include <cstdlib>

#include <CLI/CLI.hpp>

namespace troupe::bench {

Arguments::Arguments(const std::string& purpose) : app_(std::make_unique<CLI::App>(purpose)) {}
Arguments::~Arguments() = default;

void Arguments::option(const std::string& name, int& value, const std::string& help) {
  app_->add_option(name, value, help)->capture_default_str();
}
void Arguments::option(const std::string& name, unsigned& value, const std::string& help) {
  app_->add_option(name, value, help)->capture_default_str();
}
void Arguments::option(const std::string& name, double& value, const std::string& help) {
  const auto refuse = [](std::string& text) -> std::string {
    double number = 0;
    const bool fits =
        CLI::detail::lexical_cast(text, number) && std::isfinite(number) && number >= 0;
    return fits ? "" : "'" + text + "' is not a number of 0 or more";
  };
  app_->add_option(name, value, help)
      ->check(CLI::Validator(refuse, "NUMBER >= 0"))
      ->capture_default_str();
}
void Arguments::option(const std::string& name, std::string& value, const std::string& help) {
  app_->add_option(name, value, help)->capture_default_str();
}
void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}

void Arguments::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app_->exit(error) == 0 ? 0 : 2);
  }
}

}  // namespace troupe::bench
