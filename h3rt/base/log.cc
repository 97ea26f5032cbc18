#include "h3rt/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace h3rt {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "h3rt", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l%$: %v");
    return made;
  }();
  return *logger;
}

}  // namespace

void SetLogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return Logger().set_level(spdlog::level::debug);
    case LogLevel::kInfo:
      return Logger().set_level(spdlog::level::info);
    case LogLevel::kWarning:
      return Logger().set_level(spdlog::level::warn);
    case LogLevel::kError:
      return Logger().set_level(spdlog::level::err);
    case LogLevel::kSilent:
      return Logger().set_level(spdlog::level::off);
  }
}

void LogDebug(std::string_view message) { Logger().debug("{}", message); }
void LogInfo(std::string_view message) { Logger().info("{}", message); }
void LogWarning(std::string_view message) { Logger().warn("{}", message); }
void LogError(std::string_view message) { Logger().error("{}", message); }

}  // namespace h3rt
