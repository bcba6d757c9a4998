#include "log/log.hpp"

#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace troupe::log {
namespace {

/// The one that spdlog starts with, which writes to the standard output.
bool is_spdlogs_first(const spdlog::logger& logger) {
  return logger.name().empty() && logger.sinks().size() == 1 &&
         dynamic_cast<spdlog::sinks::stdout_color_sink_mt*>(logger.sinks().front().get()) !=
             nullptr;
}

/// What the program has set as its default logger, else an own one: the standard output is the
/// program's.
spdlog::logger& logger() {
  auto* chosen = spdlog::default_logger_raw();
  if (chosen != nullptr && !is_spdlogs_first(*chosen)) return *chosen;
  // Never destroyed: other threads may log while the program exits.
  static auto& own =
      *new spdlog::logger("troupe", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  if (chosen != nullptr) own.set_level(chosen->level());
  return own;
}

}  // namespace

void info(const std::string& line) { logger().info("{}", line); }
void warn(const std::string& line) { logger().warn("{}", line); }
void error(const std::string& line) { logger().error("{}", line); }
/// Once more in a forked copy that becomes part of a cluster itself.
void to_stderr() {
  spdlog::drop("troupe");
  spdlog::set_default_logger(spdlog::stderr_logger_st("troupe"));
}

}  // namespace troupe::log
