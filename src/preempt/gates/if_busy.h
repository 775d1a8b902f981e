// What a thread does that finds another one opening the same queue's gates. The other may stand in the
// driver.
#pragma once

namespace xsched::preempt {

enum class IfBusy { kWait, kReturn };

}  // namespace xsched::preempt
