#include "rm.h"
namespace standin::rm {
void ContextCreated(uint64_t) {}
void ContextDestroyed(uint64_t) {}
}  // namespace standin::rm
