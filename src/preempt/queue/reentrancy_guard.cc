#include "preempt/queue/reentrancy_guard.h"

namespace xsched::preempt {
namespace {

thread_local int depth = 0;

}  // namespace

bool InsideXSched() { return depth != 0; }
void ReentrancyGuard::Enter() { ++depth; }
void ReentrancyGuard::Leave() { --depth; }

}  // namespace xsched::preempt
