// Messages on stderr, in other people's processes: quiet unless something is wrong or the user asked.
//
// XSCHED_LOG = off | error | warn (default) | info | debug. XLOG_LEVEL, XSched 1.2's name, is read as well.
#pragma once

namespace xsched {

enum class LogLevel { kOff, kError, kWarn, kInfo, kDebug };

bool LogEnabled(LogLevel level);

// Writes "xsched: <text>\n" in one write(2). `format` is printf's.
[[gnu::format(printf, 2, 3)]] void Log(LogLevel level, const char* format, ...);

#define XSCHED_ERROR(...) ::xsched::Log(::xsched::LogLevel::kError, __VA_ARGS__)
#define XSCHED_WARN(...) ::xsched::Log(::xsched::LogLevel::kWarn, __VA_ARGS__)
#define XSCHED_INFO(...)                                                                                   \
  (::xsched::LogEnabled(::xsched::LogLevel::kInfo) ? ::xsched::Log(::xsched::LogLevel::kInfo, __VA_ARGS__) \
                                                   : (void)0)
#define XSCHED_DEBUG(...)                                                                                    \
  (::xsched::LogEnabled(::xsched::LogLevel::kDebug) ? ::xsched::Log(::xsched::LogLevel::kDebug, __VA_ARGS__) \
                                                    : (void)0)

}  // namespace xsched
