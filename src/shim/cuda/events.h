// The scopes of calls on CUDA events.
#pragma once

#include "shim/common/event_scopes.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

using EventCreation = shim::EventCreation<Platform>;
using EventDestruction = shim::EventDestruction<Platform>;
using EventRecording = shim::EventRecording<Platform>;
using UnknownRecording = shim::UnknownRecording<Platform>;  // cuCtxRecordEvent: of many streams
using UnseenRecording = shim::UnseenRecording<Platform>;
using EventWait = shim::EventWait<Platform>;
using EventOrder = shim::EventOrder<Platform>;

// The event that a node of a graph records. Null: it is another node.
inline CUevent EventOfNode(const CUgraphNodeParams* node) {
  return node == nullptr || node->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD ? nullptr : node->eventRecord.event;
}

// The scope of cuCtxWaitEvent. A null context is the current one.
class ContextOrder {
 public:
  ContextOrder(const Call& call, CUcontext context, CUevent event);
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
