// What both sides know of kUsage.
#pragma once

#include "ipc/messages.h"

namespace xsched::ipc {

// The account stands for all further devices and priorities.
inline bool IsOfFurtherDevices(const Usage& account) { return account.others != 0 && account.device == 0; }

}  // namespace xsched::ipc
