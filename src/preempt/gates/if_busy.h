// What a thread does if another one is opening the same queue's gates. The other one may be blocked in the
// driver.
#pragma once

namespace xsched::preempt {

enum class IfBusy { kWait, kReturn };

}  // namespace xsched::preempt
