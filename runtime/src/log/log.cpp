#include "log/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace troupe::log {

void info(const std::string& line) { spdlog::info("{}", line); }
void warn(const std::string& line) { spdlog::warn("{}", line); }
void error(const std::string& line) { spdlog::error("{}", line); }
/// Once more in a forked copy that becomes part of a cluster itself.
void to_stderr() {
  spdlog::drop("troupe");
  spdlog::set_default_logger(spdlog::stderr_logger_st("troupe"));
}

}  // namespace troupe::log
