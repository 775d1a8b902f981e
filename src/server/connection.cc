#include "server/connection.h"

namespace xsched::server {

std::string CleanText(const char* text, size_t size) {
  std::string clean;
  for (size_t i = 0; i < size && text[i] != '\0'; ++i) {
    bool printable = text[i] >= ' ' && text[i] <= '~';
    clean.push_back(printable ? text[i] : '?');
  }
  return clean;
}

namespace {

bool IsPriority(int32_t priority) { return priority >= PRIORITY_NO_EXECUTE && priority <= PRIORITY_MAX; }

}  // namespace

bool IsValid(const ipc::WireHints& hints) {
  return IsPriority(hints.priority) && hints.utilization >= UTILIZATION_MIN &&
         hints.utilization <= UTILIZATION_MAX && hints.deadline_us >= NO_DEADLINE &&
         hints.laxity_us >= NO_LAXITY && IsPriority(hints.lax_priority) &&
         IsPriority(hints.critical_priority);
}

sched::Hints FromWire(const ipc::WireHints& hints) {
  return {hints.priority,  hints.utilization,  hints.deadline_us,
          hints.laxity_us, hints.lax_priority, hints.critical_priority};
}

ipc::WireHints ToWire(const sched::Hints& hints) {
  return {hints.priority,  hints.utilization,  hints.deadline_us,
          hints.laxity_us, hints.lax_priority, hints.critical_priority};
}

}  // namespace xsched::server
