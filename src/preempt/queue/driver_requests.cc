#include "preempt/queue/driver_requests.h"

namespace xsched::preempt {
namespace {

thread_local int forbidden = 0;

}  // namespace

NoDriverCalls::NoDriverCalls() { ++forbidden; }
NoDriverCalls::~NoDriverCalls() { --forbidden; }
bool NoDriverCalls::Here() { return forbidden != 0; }

}  // namespace xsched::preempt
