#include "capture.h"

#include <algorithm>
#include <atomic>

#include "driver.h"
#include "event.h"
#include "graph.h"

namespace standin {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// While there is no capture, calls pass without the lock. This is nearly always so.
std::atomic<int> active_count{0};
uint64_t captures_made = 0;

std::vector<std::shared_ptr<Capture>>& ActiveCaptures() {
  static auto* const captures = new std::vector<std::shared_ptr<Capture>>;
  return *captures;
}

// True if `capture` forbids unsafe calls of this thread.
bool Forbids(const Capture& capture) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  const bool ours = capture.thread == std::this_thread::get_id();
  if (ours && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED) return true;
  return !ours && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

void End(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (const StreamPtr& stream : capture->streams) {
    stream->capture = nullptr;
    stream->capture_tips.clear();
  }
  std::erase(ActiveCaptures(), capture);
  active_count.store(static_cast<int>(ActiveCaptures().size()), std::memory_order_relaxed);
}

// Everything that forked streams captured must lead back to the origin.
bool IsJoined(const Capture& capture) {
  const std::vector<Node*>& ends = capture.origin->capture_tips;
  for (const StreamPtr& stream : capture.streams) {
    for (const Node* tip : stream->capture_tips) {
      if (std::none_of(ends.begin(), ends.end(), [&](const Node* end) { return DependsOn(end, tip); }))
        return false;
    }
  }
  return true;
}

CUresult Begin(CUstream handle, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
               std::vector<Node*> tips) {
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->kind == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = ++captures_made;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream.get();
  capture->graph_is_the_programs = graph != nullptr;
  capture->graph = graph != nullptr ? std::move(graph) : std::make_shared<Graph>();
  capture->streams.push_back(stream);
  stream->capture = capture;
  stream->capture_tips = std::move(tips);
  ActiveCaptures().push_back(capture);
  active_count.store(static_cast<int>(ActiveCaptures().size()), std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus StatusOf(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// Asking for the legacy stream's capture status is refused, but invalidates no capture.
bool BlockingStreamCaptures(Context& context) {
  const std::vector<StreamPtr> blocking = BlockingStreamsOf(context);
  return std::any_of(blocking.begin(), blocking.end(),
                     [](const StreamPtr& s) { return s->capture != nullptr; });
}

CUresult StatusFor(CUstream handle, StreamPtr* out) {
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->kind == Stream::Kind::kLegacy && BlockingStreamCaptures(*stream->context)) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  *out = stream;
  return CUDA_SUCCESS;
}

}  // namespace

void Invalidate(Capture& capture) { capture.invalidated = true; }

CUresult RefuseUnsafeUse() {
  bool refused = false;
  for (const auto& capture : ActiveCaptures()) {
    if (!Forbids(*capture)) continue;
    Invalidate(*capture);
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult RefuseUnsafeCall() {
  if (active_count.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  Lock lock;
  return RefuseUnsafeUse();
}

CUresult RefuseConflictWithCapture() {
  if (active_count.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  Lock lock;
  bool refused = false;
  for (const auto& capture : ActiveCaptures()) {
    if (capture->origin->context != CurrentContext()) continue;
    Invalidate(*capture);
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult RefuseLegacyStreamDuringCapture(Stream& stream) {
  if (ActiveCaptures().empty() || stream.kind != Stream::Kind::kLegacy) return CUDA_SUCCESS;
  bool refused = false;
  for (const StreamPtr& other : BlockingStreamsOf(*stream.context)) {
    if (other->capture == nullptr) continue;
    Invalidate(*other->capture);
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult RefuseOnCapturingStream(Stream& stream) {
  Invalidate(*stream.capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult RefuseEventFromOutside(Stream& stream) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Invalidate(*stream.capture);
  return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

CUresult AddToCapture(Stream& stream, Work work) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  stream.capture_tips = {
      AddNode(*stream.capture->graph, work.type, std::move(work.steps), std::move(stream.capture_tips))};
  return CUDA_SUCCESS;
}

CUresult JoinCapture(Stream& stream, const Event& event) {
  Capture& capture = *event.capture;
  if (!capture.active()) {
    if (stream.capture == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Invalidate(*stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.kind == Stream::Kind::kLegacy) {
    Invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture_tips.clear();
    capture.streams.push_back(stream.shared_from_this());
  } else if (stream.capture != event.capture) {
    Invalidate(capture);
    Invalidate(*stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  for (Node* tip : event.capture_tips) {
    if (std::find(stream.capture_tips.begin(), stream.capture_tips.end(), tip) == stream.capture_tips.end()) {
      stream.capture_tips.push_back(tip);
    }
  }
  return CUDA_SUCCESS;
}

void AbandonCapture(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  Invalidate(*capture);
  if (capture->origin == &stream) End(capture);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  Lock lock;
  return Begin(stream, mode, nullptr, {});
}
CUresult cuStreamBeginCapture(CUstream stream) {
  return standin::cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  Lock lock;
  std::shared_ptr<Graph> graph = FindGraph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> tips;
  for (size_t i = 0; i < count; ++i) tips.push_back(reinterpret_cast<Node*>(dependencies[i]));
  return Begin(stream, mode, std::move(graph), std::move(tips));
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream.get()) {
    Invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  } else if (capture->invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!IsJoined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  End(capture);
  if (result == CUDA_SUCCESS)
    *out = capture->graph_is_the_programs ? HandleOf(capture->graph) : Publish(capture->graph);
  return result;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  Lock lock;
  StreamPtr stream;
  if (const CUresult error = StatusFor(handle, &stream)) return error;
  *status = StatusOf(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  Lock lock;
  StreamPtr stream;
  if (const CUresult error = StatusFor(handle, &stream)) return error;
  *status = StatusOf(*stream);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = stream->capture->id;
  if (graph != nullptr) *graph = HandleOf(stream->capture->graph);
  if (dependencies != nullptr)
    *dependencies = reinterpret_cast<const CUgraphNode*>(stream->capture_tips.data());
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = stream->capture_tips.size();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return standin::cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return standin::cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, size_t count, unsigned int flags) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->capture_tips.clear();
  for (size_t i = 0; i < count; ++i) stream->capture_tips.push_back(reinterpret_cast<Node*>(dependencies[i]));
  return CUDA_SUCCESS;
}
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                           unsigned int flags) {
  return standin::cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

}  // namespace standin
