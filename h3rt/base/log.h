// Logging to standard error; standard output belongs to results.
#pragma once

#include <string_view>

namespace h3rt {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kSilent };

void SetLogLevel(LogLevel level);
void LogDebug(std::string_view message);
void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);

}  // namespace h3rt
