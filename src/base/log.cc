#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <atomic>

#include "base/standard_error.h"

namespace xsched {
namespace {

LogLevel LevelFromEnvironment() {
  const char* value = getenv("XSCHED_LOG");
  if (value == nullptr) value = getenv("XLOG_LEVEL");
  if (value == nullptr) return LogLevel::kWarn;
  constexpr struct {
    const char* name;
    LogLevel level;
  } kNames[] = {{"off", LogLevel::kOff},   {"error", LogLevel::kError}, {"erro", LogLevel::kError},
                {"warn", LogLevel::kWarn}, {"info", LogLevel::kInfo},   {"debug", LogLevel::kDebug},
                {"debg", LogLevel::kDebug}};
  for (const auto& entry : kNames) {
    if (strcasecmp(value, entry.name) == 0) return entry.level;
  }
  return LogLevel::kWarn;
}

}  // namespace

bool LogEnabled(LogLevel level) {
  // -1: not read yet. Threads that race here all store the same value.
  static std::atomic<int> configured{-1};
  int current = configured.load(std::memory_order_relaxed);
  if (current < 0) {
    current = static_cast<int>(LevelFromEnvironment());
    configured.store(current, std::memory_order_relaxed);
  }
  return static_cast<int>(level) <= current;
}

void Log(LogLevel level, const char* format, ...) {
  if (!LogEnabled(level)) return;
  char line[512];
  int used = snprintf(line, sizeof line, "xsched: ");
  va_list args;
  va_start(args, format);
  int text = vsnprintf(line + used, sizeof line - static_cast<size_t>(used) - 1, format, args);
  va_end(args);
  if (text < 0) return;
  used += text;
  if (used > static_cast<int>(sizeof line) - 2) used = static_cast<int>(sizeof line) - 2;
  line[used++] = '\n';
  WriteToStandardError(line, static_cast<size_t>(used));
}

}  // namespace xsched
