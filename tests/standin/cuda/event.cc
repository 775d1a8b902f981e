#include "event.h"

#include <cstring>
#include <unordered_map>

#include "capture.h"
#include "context.h"
#include "driver.h"
#include "graph.h"
#include "stream.h"

namespace standin {
namespace {

std::unordered_map<CUevent, EventPtr>& Events() {
  static auto* const events = new std::unordered_map<CUevent, EventPtr>;
  return *events;
}

EventPtr FindEvent(CUevent handle) {
  const auto found = Events().find(handle);
  return found == Events().end() ? nullptr : found->second;
}

// An event that was recorded in a capture cannot be queried: while the capture is active this is refused, and
// afterwards it has no meaning.
CUresult RefuseCaptured(const Event& event) {
  if (!event.capture->active()) return CUDA_ERROR_INVALID_VALUE;
  Invalidate(*event.capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult RecordInStream(Lock& lock, const EventPtr& event, Stream& stream) {
  if (stream.capture != nullptr) {
    if (!stream.capture->valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream.capture;
    event->capture_tips = stream.capture_tips;
    event->command = nullptr;
    return CUDA_SUCCESS;
  }
  CommandPtr command;
  if (const CUresult result = Submit(lock, stream, {CU_GRAPH_NODE_TYPE_EVENT_RECORD, {}}, &command))
    return result;
  event->capture = nullptr;
  event->command = command;
  return CUDA_SUCCESS;
}

// An event record node: each launch of the graph records the event when it gets there.
Step RecordWhenReached(const EventPtr& event, Context* context) {
  return {Step::Kind::kAction, [=] {
            auto passed = std::make_shared<Command>();
            passed->context = context;
            passed->done = true;
            passed->finished = Clock::now();
            event->command = passed;
          }};
}

Step WaitWhenReached(const EventPtr& event) {
  return {Step::Kind::kWait, nullptr, [event] { return event->command == nullptr || event->command->done; }};
}

}  // namespace

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  Lock lock;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr || (flags & ~7u)) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<Event>(Event{.context = context, .flags = flags});
  *out = reinterpret_cast<CUevent>(event.get());
  Events()[*out] = event;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  Lock lock;
  return Events().erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventDestroy(CUevent handle) { return standin::cuEventDestroy_v2(handle); }

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph_handle, const CUgraphNode* dependencies,
                                   size_t count, CUevent handle) {
  Lock lock;
  const EventPtr event = FindEvent(handle);
  const std::shared_ptr<Graph> graph = FindGraph(graph_handle);
  Context* context = CurrentContext();
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || graph == nullptr || context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> needs;
  for (size_t i = 0; i < count; ++i) needs.push_back(reinterpret_cast<Node*>(dependencies[i]));
  *out = reinterpret_cast<CUgraphNode>(AddNode(*graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                               {RecordWhenReached(event, context)}, std::move(needs)));
  return CUDA_SUCCESS;
}
// Of these nodes only.
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* parameters) {
  if (parameters == nullptr || parameters->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD)
    return CUDA_ERROR_INVALID_VALUE;
  return standin::cuGraphAddEventRecordNode(out, graph, dependencies, count, parameters->eventRecord.event);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags) {
  Lock lock;
  const EventPtr event = FindEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto [stream, error] = ResolveStream(stream_handle);
  if (error) return error;
  if (flags & CU_EVENT_RECORD_EXTERNAL) {
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    return Submit(lock, *stream,
                  {CU_GRAPH_NODE_TYPE_EVENT_RECORD, {RecordWhenReached(event, stream->context)}});
  }
  return RecordInStream(lock, event, *stream);
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return standin::cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
  Lock lock;
  const EventPtr event = FindEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto [stream, error] = ResolveStream(stream_handle);
  if (error) return error;
  if (flags & CU_EVENT_WAIT_EXTERNAL) {
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_WAIT_EVENT, {WaitWhenReached(event)}});
  }
  if (event->capture != nullptr) return JoinCapture(*stream, *event);
  if (stream->capture != nullptr) return RefuseEventFromOutside(*stream);
  if (event->command == nullptr || event->command->done) return RefuseLegacyStreamDuringCapture(*stream);
  return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_WAIT_EVENT, {}, {event->command}});
}

CUresult cuEventQuery(CUevent handle) {
  Lock lock;
  const EventPtr event = FindEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture != nullptr) return RefuseCaptured(*event);
  if (event->context->lost) return event->context->lost;
  return event->command == nullptr || event->command->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
  Lock lock;
  const EventPtr event = FindEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture != nullptr) return RefuseCaptured(*event);
  const CommandPtr command = event->command;  // recording it anew does not change what waits already
  return command == nullptr ? CUDA_SUCCESS : AwaitCommand(lock, command);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent from_handle, CUevent to_handle) {
  Lock lock;
  const EventPtr from = FindEvent(from_handle), to = FindEvent(to_handle);
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (from->capture != nullptr || to->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) || from->command == nullptr ||
      to->command == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!from->command->done || !to->command->done) return CUDA_ERROR_NOT_READY;
  *milliseconds =
      std::chrono::duration<float, std::milli>(to->command->finished - from->command->finished).count();
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return standin::cuEventElapsedTime_v2(milliseconds, from, to);
}

// A handle stands for the same event in the same process. The real driver opens only those of other
// processes.
CUresult cuIpcGetEventHandle(CUipcEventHandle* out, CUevent handle) {
  Lock lock;
  const EventPtr event = FindEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((event->flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_HANDLE;
  *out = {};
  std::memcpy(out->reserved, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle handle) {
  Lock lock;
  CUevent original = nullptr;
  std::memcpy(&original, handle.reserved, sizeof original);
  const EventPtr event = FindEvent(original);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // Handles are compared only. One that is no address of an event cannot be another event's.
  static uintptr_t opened = 0;
  *out = reinterpret_cast<CUevent>(++opened * 2 + 1);
  Events()[*out] = event;
  return CUDA_SUCCESS;
}

// An event of everything in a context: it passes when all streams' work so far has.
CUresult cuCtxRecordEvent(CUcontext context_handle, CUevent handle) {
  Lock lock;
  Context* context = context_handle == nullptr ? CurrentContext() : FindContext(context_handle);
  const EventPtr event = FindEvent(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto stream = std::make_shared<Stream>(*context, Stream::Kind::kOrdinary, CU_STREAM_NON_BLOCKING, 0);
  event->capture = nullptr;
  return Submit(lock, *stream,
                {CU_GRAPH_NODE_TYPE_EVENT_RECORD, {}, context->device->LastCommandsOf(*context)},
                &event->command);
}

CUresult cuCtxWaitEvent(CUcontext context_handle, CUevent handle) {
  Lock lock;
  Context* context = context_handle == nullptr ? CurrentContext() : FindContext(context_handle);
  const EventPtr event = FindEvent(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->command == nullptr) return CUDA_SUCCESS;
  std::vector<StreamPtr> streams(context->streams.begin(), context->streams.end());
  for (const auto& [thread, stream] : context->per_thread) streams.push_back(stream);
  streams.push_back(context->legacy);
  for (const StreamPtr& stream : streams) {
    Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_WAIT_EVENT, {}, {event->command}});
  }
  return CUDA_SUCCESS;
}

}  // namespace standin
