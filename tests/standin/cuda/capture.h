// Stream capture: which streams make which graph, and what the rules of capture refuse.
//
// A capture is active from its begin to its end. If a rule is broken, it becomes invalid. Then every captured
// call fails, and ending the capture fails and gives no graph. The rules are those of a driver 580 (CUDA
// 13.0), measured call by call.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "cuda_api.h"
#include "stream.h"

namespace standin {

struct Graph;
struct Event;

struct Capture {
  uint64_t id;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  Stream* origin;
  std::shared_ptr<Graph> graph;
  bool graph_is_the_programs = false;  // cuStreamBeginCaptureToGraph
  std::vector<StreamPtr> streams;      // origin first
  bool invalidated = false;
  bool ended = false;

  bool active() const { return !ended; }
  bool valid() const { return !ended && !invalidated; }
};

// Rules that Entry applies; these take the lock.
CUresult RefuseUnsafeCall();
CUresult RefuseConflictWithCapture();

// All below REQUIRE TheLock. Each Refuse… function invalidates the captures that the call conflicts with.
void Invalidate(Capture& capture);
CUresult RefuseLegacyStreamDuringCapture(Stream& stream);  // CUDA_SUCCESS: there is nothing to refuse
CUresult RefuseOnCapturingStream(Stream& stream);
CUresult RefuseEventFromOutside(Stream& stream);
CUresult AddToCapture(Stream& stream, Work work);
CUresult JoinCapture(Stream& stream, const Event& event);
// The stream is being destroyed.
void AbandonCapture(Stream& stream);
// RefuseUnsafeCall, for functions of which only some uses are unsafe.
CUresult RefuseUnsafeUse();

}  // namespace standin
