// The scopes of calls on HIP events.
#pragma once

#include "shim/common/event_scopes.h"
#include "shim/hip/platform.h"

namespace xsched::hip {

using EventCreation = shim::EventCreation<Platform>;
using EventDestruction = shim::EventDestruction<Platform>;
using UnknownRecording = shim::UnknownRecording<Platform>;
using EventRecording = shim::EventRecording<Platform>;
using UnseenRecording = shim::UnseenRecording<Platform>;
using EventWait = shim::EventWait<Platform>;
using EventOrder = shim::EventOrder<Platform>;

}  // namespace xsched::hip
