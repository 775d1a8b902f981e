#include "base/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <atomic>

#include "base/log.h"

namespace xsched {
namespace {

// True for the first warning about a name in this process. There are few names, and all are literals.
bool FirstWarning(const char* name) {
  static std::atomic<const char*> warned[32];
  for (std::atomic<const char*>& slot : warned) {
    const char* known = nullptr;
    if (slot.compare_exchange_strong(known, name, std::memory_order_relaxed)) return true;
    if (strcmp(known, name) == 0) return false;
  }
  return false;
}

}  // namespace

const char* EnvText(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && value[0] != '\0' ? value : nullptr;
}

std::optional<int64_t> EnvInt(const char* name, int64_t min, int64_t max) {
  const char* value = EnvText(name);
  if (value == nullptr) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (errno != 0 || end == value || *end != '\0' || number < min || number > max) {
    if (FirstWarning(name)) {
      XSCHED_WARN("%s=%s is not a whole number from %lld to %lld: using the default", name, value,
                  static_cast<long long>(min), static_cast<long long>(max));
    }
    return std::nullopt;
  }
  return number;
}

std::optional<bool> EnvBool(const char* name) {
  const char* value = EnvText(name);
  if (value == nullptr) return std::nullopt;
  for (const char* word : {"on", "1", "true", "yes"}) {
    if (strcasecmp(value, word) == 0) return true;
  }
  for (const char* word : {"off", "0", "false", "no"}) {
    if (strcasecmp(value, word) == 0) return false;
  }
  if (FirstWarning(name)) XSCHED_WARN("%s=%s is neither ON nor OFF: using the default", name, value);
  return std::nullopt;
}

}  // namespace xsched
